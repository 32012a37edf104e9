// Command portal is a product of yours that shows its customers their webhooks, in a page of its own.
//
//	POSTHORN_URL=https://hooks.example.com POSTHORN_API_KEY=phk_... go run ./client/example/portal
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"html"
	"log"
	"net/http"
	"os"
	"time"

	"posthorn/client"
)

func main() {
	posthorn, err := client.New(os.Getenv("POSTHORN_URL"), os.Getenv("POSTHORN_API_KEY"))
	if err != nil {
		log.Fatal(err)
	}
	address := os.Getenv("ADDR")
	if address == "" {
		address = "127.0.0.1:9200"
	}
	server := &http.Server{Addr: address, Handler: newProduct(posthorn, os.Getenv("POSTHORN_URL")), ReadHeaderTimeout: 5 * time.Second}
	log.Printf("open http://%s", address)
	log.Fatal(server.ListenAndServe())
}

// newProduct is a page with the portal in it, and the route from which the page gets its links. A real product finds
// out here who is signed in; this one has a single customer.
func newProduct(posthorn *client.Client, server string) http.Handler {
	const customer = "customer_42"
	routes := http.NewServeMux()
	routes.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = fmt.Fprintf(w, page, html.EscapeString(server))
	})
	routes.HandleFunc("POST /webhooks/portal-link", func(w http.ResponseWriter, r *http.Request) {
		url, err := portalLink(r.Context(), posthorn, customer)
		if err != nil {
			log.Print(err)
			http.Error(w, "no link", http.StatusBadGateway)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]string{"url": url}) // the browser has disconnected
	})
	return routes
}

const page = `<!doctype html>
<html lang="en">
<title>Shop settings</title>
<h1>Webhooks</h1>
<script src="%s/portal.js" defer></script>
<posthorn-portal link="/webhooks/portal-link" title="Webhooks"></posthorn-portal>
</html>
`

// portalLink asks Posthorn for a link into the dashboard of a customer, whose id is your own.
func portalLink(ctx context.Context, posthorn *client.Client, customer string) (string, error) {
	link, err := posthorn.Tenant(customer).CreatePortalLink(ctx, client.PortalLinkInput{
		CreateTenant: new(true), // at the customer's first visit
		Role:         new(client.PortalLinkInputRoleDeveloper),
		BrandName:    new("Shop"),
	})
	return link.URL, err
}
