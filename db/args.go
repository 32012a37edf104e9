package db

import "reflect"

// Args is the parameters of a statement in the order of its numbers, for a batch: b.Queue(sql.InsertX,
// db.Args(params)...). The generator writes the fields of its Params types in that order.
func Args(params any) []any {
	v := reflect.ValueOf(params)
	args := make([]any, v.NumField())
	for i := range args {
		args[i] = v.Field(i).Interface()
	}
	return args
}
