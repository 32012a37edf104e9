-- A member's or program's own entry in the ledger. The tenant is the transaction's, not an argument.
SET LOCAL ROLE posthorn_lookup;
CREATE OR REPLACE FUNCTION posthorn.enter_books(days date[], accepted int[], delivered int[], failed int[], canceled int[], expunged int[])
RETURNS void LANGUAGE sql SECURITY DEFINER SET search_path = posthorn, pg_temp AS $$
	INSERT INTO ledger (book_tenant, book_day, accepted, delivered, failed, canceled, expunged)
	SELECT array_fill(posthorn.tenant(), ARRAY[cardinality(days)]), days, accepted, delivered, failed, canceled, expunged
	WHERE posthorn.tenant() IS NOT NULL AND cardinality(days) > 0
$$;
REVOKE ALL ON FUNCTION posthorn.enter_books(date[], int[], int[], int[], int[], int[]) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION posthorn.enter_books(date[], int[], int[], int[], int[], int[]) TO posthorn_tenant;
