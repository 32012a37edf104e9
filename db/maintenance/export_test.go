package maintenance

// SealedColumns names the columns that a rotation reseals, as table.column.
func SealedColumns() []string {
	all := make([]string, len(sealedColumns))
	for i, c := range sealedColumns {
		all[i] = c.name
	}
	return all
}
