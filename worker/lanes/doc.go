// Package lanes decides which delivery starts next. A lane is the queue of one endpoint; a worker owns lanes and keeps
// the head of each in memory.
//
//	Dispatcher   all lanes of a worker: turns of lanes and tenants, slots, memory        dispatcher.go
//	  reading    which lanes to read, from where, and what a read brought                reading.go
//	  handover   rows that come from a commit of the same process instead of a read      handover.go
//	  changes    configuration, pauses, lanes that are released                          changes.go
//	  breaker    health of a lane's endpoint, probes                                     breaker.go
//	  ordering   which rows of an ordered lane are ready                                 ordering.go
//	  heldback   how long a lane's own limits hold deliveries back                       heldback.go
//	  pace       starts of a tenant that holds many slots                                pace.go
//	Watermark    up to which number every row was committed or given up                  watermark.go
//
// The package has no database and no context. It starts no goroutine; timers call back into the dispatcher. The
// worker's loops bring it what they read and do what it plans.
package lanes
