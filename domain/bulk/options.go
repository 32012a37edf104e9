package bulk

import (
	"encoding/json"
	"fmt"

	"posthorn/domain/fault"
	"posthorn/domain/words"
)

// OptionFaults says what is wrong with what a job is told beside what it does: why, and its pace in rows a second, nil
// where it is to go as fast as it can.
func OptionFaults(why string, pace *int) []fault.Field {
	wrong := words.ReasonFaults(why, 0)
	if pace != nil && (*pace < 1 || *pace > MaxPace) {
		wrong = append(wrong, fault.Field{Name: "pace", Code: "pace_range", Detail: fmt.Sprintf("pace must be from 1 to %d per second.", MaxPace)})
	}
	return wrong
}

// ReadSkipped reads how many a job left alone, by reason, out of how that is stored.
func ReadSkipped(stored []byte) map[Skip]int64 {
	skipped := map[Skip]int64{}
	_ = json.Unmarshal(stored, &skipped) // as it was stored
	return skipped
}
