package main

import "testing"

func TestTheShareOfAnEventAndOfADeliveryAreToldApart(t *testing.T) {
	t.Parallel()
	// An event takes 100 and each delivery 30 of the first part; of the others nothing.
	for i, c := range split(usage{web: 130}, usage{web: 400}, 10) {
		want := cost{What: partNames[i].name}
		if i == 0 {
			want.Event, want.Delivery, want.FanOut = 100, 30, 40
		}
		if c != want {
			t.Errorf("%+v, want %+v", c, want)
		}
	}
}
