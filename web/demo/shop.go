package demo

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"time"
)

type object = map[string]any

// eventType is one of the shop's, with its relative frequency.
type eventType struct {
	name, description string
	weight            int
	data              func(order int) object
}

var catalogue = []eventType{
	{"order.created", "A customer has placed an order.", 8, order("open")},
	{"order.completed", "An order was paid and is being packed.", 10, order("completed")},
	{"order.canceled", "An order was canceled before it was sent.", 1, order("canceled")},
	{"shipment.sent", "A parcel has left the warehouse.", 5, func(n int) object {
		return object{"order_id": orderID(n), "carrier": "DHL", "tracking": fmt.Sprintf("00340434%012d", n*7919)}
	}},
	{"invoice.paid", "An invoice was paid.", 6, invoice},
	{"invoice.refunded", "Money was sent back.", 2, invoice},
	{"customer.created", "Somebody has opened an account.", 3, func(n int) object {
		return object{"customer_id": fmt.Sprintf("cus_%05d", n), "country": one("DE", "FR", "NL", "US")}
	}},
}

func orderID(n int) string { return fmt.Sprintf("ord_%05d", 10000+n) }

func order(status string) func(int) object {
	return func(n int) object {
		return object{"order_id": orderID(n), "status": status, "total": 990 + rand.IntN(250)*100, "currency": "EUR", "items": 1 + rand.IntN(4)}
	}
}

func invoice(n int) object {
	return object{"invoice_id": fmt.Sprintf("inv_%05d", n), "order_id": orderID(n), "total": 990 + rand.IntN(250)*100, "currency": one("EUR", "EUR", "EUR", "EUR", "XTS")}
}

func one(of ...string) string { return of[rand.IntN(len(of))] }

// customer is an endpoint, and how it behaves.
type customer struct {
	name, path string
	types      []string
	delays     []int // seconds between its attempts: short, so that one sees them within minutes
	answer     func(w http.ResponseWriter, body []byte)
}

var customers = []customer{
	{"Order service", "/orders", []string{"order.*"}, []int{5, 30, 300}, func(w http.ResponseWriter, _ []byte) {
		wait(8, 60)
		reply(w, http.StatusOK, object{"ok": true})
	}},
	{"Warehouse", "/warehouse", []string{"order.completed", "shipment.sent"}, []int{2, 10, 60, 300}, func(w http.ResponseWriter, _ []byte) {
		wait(30, 220)
		if rand.IntN(100) < 6 {
			w.Header().Set("Retry-After", "2")
			reply(w, http.StatusServiceUnavailable, object{"error": "a deployment is under way"})
			return
		}
		reply(w, http.StatusAccepted, object{"queued": true})
	}},
	{"Accounting", "/accounting", []string{"invoice.*"}, []int{5, 30}, func(w http.ResponseWriter, body []byte) {
		wait(20, 90)
		var event struct{ Data struct{ Currency string } }
		if json.Unmarshal(body, &event) == nil && event.Data.Currency == "XTS" {
			reply(w, http.StatusUnprocessableEntity, object{"error": "currency XTS is unknown", "field": "currency"})
			return
		}
		reply(w, http.StatusOK, object{"booked": true})
	}},
	{"Analytics", "/analytics", []string{"*"}, []int{5, 30}, func(w http.ResponseWriter, _ []byte) {
		wait(150, 900)
		reply(w, http.StatusNoContent, nil)
	}},
	{"Old CRM", "/crm/hooks", []string{"customer.created"}, []int{10, 60, 600, 3600}, func(w http.ResponseWriter, _ []byte) {
		wait(5, 30)
		reply(w, http.StatusInternalServerError, object{"error": "database is locked"})
	}},
}

func wait(least, most int) { time.Sleep(time.Duration(least+rand.IntN(most-least)) * time.Millisecond) }

func reply(w http.ResponseWriter, status int, body object) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if body != nil {
		_ = json.NewEncoder(w).Encode(body)
	}
}

// receivers responds for all customers. Each echoes the challenge of its verification.
func receivers() http.Handler {
	mux := http.NewServeMux()
	for _, c := range customers {
		mux.HandleFunc("POST "+c.path, func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
			if err != nil {
				return
			}
			var event struct {
				Type string
				Data json.RawMessage
			}
			if json.Unmarshal(body, &event) == nil && event.Type == "endpoint.verification" {
				_, _ = w.Write(event.Data)
				return
			}
			c.answer(w, body)
		})
	}
	return mux
}
