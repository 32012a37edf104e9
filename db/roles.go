package db

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"posthorn/domain/fault"
)

// roleLookup owns the functions that answer before a tenant is known.
const roleLookup = "posthorn_lookup"

// roleEmitter is granted to the roles of products, and may only emit (outbox). Posthorn itself never takes it.
const roleEmitter = "posthorn_emitter"

// engineRoles belong to the server, and all installations on it share them.
var engineRoles = []string{roleTenant, RoleIngest, RoleWorker, roleConsole, roleLookup, roleAccount, roleEmitter}

// canSet is the privilege of pg_has_role that SET ROLE needs: before version 16 every member has it.
const (
	canSet  = "CASE WHEN current_setting('server_version_num')::int >= 160000 THEN 'SET' ELSE 'MEMBER' END"
	asAdmin = "'MEMBER WITH ADMIN OPTION'"
)

// MissingRoles lists the roles that the role of the URL can't take, or that can't use the schema. `posthorn migrate
// roles` repairs both.
func MissingRoles(ctx context.Context, url string) ([]string, error) {
	conn, err := Connect(ctx, url, Options{Name: "roles"})
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	rows, _ := conn.Query(ctx, `SELECT n FROM unnest($1::text[]) n LEFT JOIN pg_roles r ON r.rolname = n
		WHERE CASE WHEN r.oid IS NULL THEN true ELSE n <> $3 AND NOT pg_has_role(current_user, r.oid, `+canSet+`)
			OR NOT coalesce((SELECT has_schema_privilege(r.oid, s.oid, 'USAGE') FROM pg_namespace s WHERE s.nspname = $2), true) END`,
		engineRoles, Schema, roleEmitter)
	missing, err := pgx.CollectRows(rows, pgx.RowTo[string])
	return missing, Translate(err)
}

// RolesFault is the error for roles that are missing; nil if there are none.
func RolesFault(missing []string) error {
	if len(missing) == 0 {
		return nil
	}
	return &fault.Error{
		Kind: fault.Invalid,
		Code: "database_roles",
		Detail: fmt.Sprintf(
			"The role of POSTHORN_DATABASE_URL can't use %s. Run `posthorn migrate roles` with POSTHORN_ADMIN_DATABASE_URL set to the URL of an administrator of the server.",
			strings.Join(missing, ", ")),
	}
}

// PrepareServer lets the role of a URL use its server for Posthorn, as the administrator of another URL: a superuser,
// or a role with CREATEROLE and CREATEDB. What is missing is created: the role of the URL, its database, the schema,
// and the roles that transactions take; these are granted to the role of the URL. It can be repeated, and told
// gets what it did.
func PrepareServer(ctx context.Context, admin, url string, told func(string)) error {
	target, err := parseURL(url, Options{})
	if err != nil {
		return err
	}
	s := &preparing{role: target.User, password: target.Password, database: target.Database, told: told}
	cfg, err := parseURL(admin, Options{Name: "roles"})
	if err != nil {
		return err
	}
	if s.conn, err = connectSomewhere(ctx, cfg); err != nil {
		return err
	}
	err = s.explain(ctx, s.server(ctx))
	_ = s.conn.Close(context.WithoutCancel(ctx))
	if err != nil {
		return err
	}
	cfg.Database = s.database
	if s.conn, err = pgx.ConnectConfig(ctx, cfg); err != nil {
		return err
	}
	defer func() { _ = s.conn.Close(context.WithoutCancel(ctx)) }()
	return s.explain(ctx, s.schema(ctx))
}

// connectSomewhere connects to the URL's database, or to postgres if there is no such database yet.
func connectSomewhere(ctx context.Context, cfg *pgx.ConnConfig) (*pgx.Conn, error) {
	conn, err := pgx.ConnectConfig(ctx, cfg)
	var server *pgconn.PgError
	if errors.As(err, &server) && server.Code == "3D000" {
		cfg = cfg.Copy()
		cfg.Database = "postgres"
		return pgx.ConnectConfig(ctx, cfg)
	}
	return conn, err
}

// preparing is one run of PrepareServer.
type preparing struct {
	conn                     *pgx.Conn
	role, password, database string
	told                     func(string)

	modern    bool // from version 16 on a grant says whether it allows SET and inherits
	self      bool // the administrator is the role of the URL
	superuser bool
}

// server creates and grants what belongs to the server.
func (s *preparing) server(ctx context.Context) error {
	var exists, database, inherits, super bool
	err := s.conn.QueryRow(ctx, `SELECT current_setting('server_version_num')::int >= 160000, current_user = $1, u.rolsuper,
			r.oid IS NOT NULL, coalesce(r.rolinherit, false), coalesce(r.rolsuper, false), EXISTS (SELECT FROM pg_database WHERE datname = $2)
		FROM pg_roles u LEFT JOIN pg_roles r ON r.rolname = $1 WHERE u.rolname = current_user`,
		s.role, s.database).Scan(&s.modern, &s.self, &s.superuser, &exists, &inherits, &super, &database)
	if err != nil {
		return err
	}
	if !exists {
		create := "CREATE ROLE " + Identifier(s.role) + " LOGIN NOINHERIT CREATEROLE"
		if s.password != "" {
			create += " PASSWORD " + literal(s.password)
		}
		if err := s.do(ctx, "created the role "+s.role, create); err != nil {
			return err
		}
	}
	if exists && inherits && !super && !s.modern {
		// It would have the rights of the roles without taking them.
		if err := s.do(ctx, "", "ALTER ROLE "+Identifier(s.role)+" NOINHERIT"); err != nil {
			return err
		}
	}
	for _, r := range engineRoles {
		if err := s.engineRole(ctx, r, super); err != nil {
			return err
		}
	}
	if !s.superuser && !s.self {
		// Who makes the role's database and restores into it must act as both owners.
		for _, owner := range []string{s.role, roleLookup} {
			if err := s.join(ctx, owner); err != nil {
				return err
			}
		}
	}
	if database {
		return nil
	}
	return s.do(ctx, "created the database "+s.database, createDatabase(s.database, s.role))
}

// engineRole creates one of the roles, and grants it to the role of the URL.
func (s *preparing) engineRole(ctx context.Context, r string, super bool) error {
	var exists bool
	if err := s.conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_roles WHERE rolname = $1)", r).Scan(&exists); err != nil {
		return err
	}
	if !exists {
		if err := s.do(ctx, "created the role "+r, "CREATE ROLE "+Identifier(r)+" NOLOGIN NOINHERIT"); err != nil {
			return err
		}
	}
	var takes, administers bool
	err := s.conn.QueryRow(ctx, "SELECT pg_has_role($1::name, $2::name, "+canSet+"), pg_has_role($1::name, $2::name, "+asAdmin+")",
		s.role, r).Scan(&takes, &administers)
	if err != nil || super || takes && (administers || s.self || !s.modern) {
		return err
	}
	// With ADMIN the role can grant it to products, and later migrations can grant it again.
	grant := "GRANT " + Identifier(r) + " TO " + Identifier(s.role)
	switch {
	case s.modern && s.self:
		grant += " WITH INHERIT FALSE, SET TRUE"
	case s.modern:
		grant += " WITH ADMIN TRUE, INHERIT FALSE, SET TRUE"
	case !s.self:
		grant += " WITH ADMIN OPTION"
	}
	err = s.do(ctx, "granted "+r+" to "+s.role, grant)
	var server *pgconn.PgError
	if takes && errors.As(err, &server) && server.Code == codeRights {
		return nil // what a process needs is there
	}
	return err
}

// join makes the administrator a member of a role.
func (s *preparing) join(ctx context.Context, role string) error {
	var does bool
	err := s.conn.QueryRow(ctx, "SELECT pg_has_role($1::name, 'USAGE') AND pg_has_role($1::name, "+canSet+")", role).Scan(&does)
	if err != nil || does {
		return err
	}
	grant := "GRANT " + Identifier(role) + " TO CURRENT_USER"
	if s.modern {
		grant += " WITH INHERIT TRUE, SET TRUE"
	}
	return s.do(ctx, "granted "+role+" to the administrator", grant)
}

// schema creates the schema and lets the roles use it. Until the tables are there, the role that owns functions can
// create them, so that a backup can be restored by an administrator who is no superuser.
func (s *preparing) schema(ctx context.Context) error {
	var exists, empty bool
	err := s.conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = $1), to_regclass($2) IS NULL",
		Schema, Schema+".tenants").Scan(&exists, &empty)
	if err != nil {
		return err
	}
	if !exists {
		if err := s.do(ctx, "created the schema "+Schema, "CREATE SCHEMA "+Schema+" AUTHORIZATION "+Identifier(s.role)); err != nil {
			return err
		}
	}
	creates := "REVOKE CREATE ON SCHEMA " + Schema + " FROM " + roleLookup
	if empty {
		creates = "GRANT CREATE ON SCHEMA " + Schema + " TO " + roleLookup
	}
	for _, statement := range []string{"GRANT USAGE ON SCHEMA " + Schema + " TO " + strings.Join(engineRoles, ", "), creates} {
		if err := s.do(ctx, "", statement); err != nil {
			return err
		}
	}
	return nil
}

// do runs a statement, and says what it did. Two runs at a time can create the same; the second finds it.
func (s *preparing) do(ctx context.Context, what, statement string) error {
	_, err := s.conn.Exec(ctx, statement)
	var server *pgconn.PgError
	if errors.As(err, &server) && (server.Code == "42710" || server.Code == "42P04" || server.Code == "23505") {
		return nil
	}
	if err == nil && what != "" {
		s.told(what)
	}
	return err
}

// explain names the grants that an administrator lacks: of roles that another role created.
func (s *preparing) explain(ctx context.Context, err error) error {
	var server *pgconn.PgError
	if !errors.As(err, &server) || server.Code != codeRights {
		return err
	}
	detail := "The administrator's role lacks permissions. Use a superuser, or a role with CREATEROLE and CREATEDB."
	rows, _ := s.conn.Query(ctx, "SELECT quote_ident(rolname) FROM pg_roles WHERE rolname = ANY($1) AND rolname <> current_user AND NOT pg_has_role(oid, "+
		asAdmin+") ORDER BY 1", append([]string{s.role}, engineRoles...))
	if others, failed := pgx.CollectRows(rows, pgx.RowTo[string]); failed == nil && len(others) > 0 {
		detail += fmt.Sprintf(" Another role created some of Posthorn's roles. As a superuser, run: GRANT %s TO %s WITH ADMIN OPTION",
			strings.Join(others, ", "), Identifier(s.conn.Config().User))
	}
	return &fault.Error{Kind: fault.Invalid, Code: "database_admin_too_weak", Cause: server, Detail: detail}
}

// createDatabase is the statement that creates a database that Posthorn can use, on servers with any locale.
func createDatabase(name, owner string) string {
	return fmt.Sprintf("CREATE DATABASE %s OWNER %s TEMPLATE template0 ENCODING 'UTF8' LC_COLLATE 'C' LC_CTYPE 'C'", Identifier(name), Identifier(owner))
}

func literal(text string) string {
	quoted := strings.ReplaceAll(text, "'", "''")
	if strings.Contains(text, `\`) {
		return " E'" + strings.ReplaceAll(quoted, `\`, `\\`) + "'"
	}
	return "'" + quoted + "'"
}

// EncodingFault is the error for a database whose encoding is not UTF8; nil for one whose is. What people write would
// be damaged at the next restore.
func EncodingFault(encoding, database, owner string) error {
	if encoding == "UTF8" {
		return nil
	}
	return &fault.Error{
		Kind: fault.Invalid,
		Code: "database_not_utf8",
		Detail: fmt.Sprintf(
			"The database %s has the encoding %s. Posthorn needs UTF8. Create another database, and name it in POSTHORN_DATABASE_URL: %s",
			database, encoding, createDatabase("posthorn_utf8", owner)),
	}
}
