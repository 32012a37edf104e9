package diagnosis

import (
	"fmt"
	"net/url"
	"strings"

	"posthorn/domain/delivery"
	"posthorn/domain/endpoint"
	"posthorn/domain/health"
	"posthorn/domain/signature"
)

// Response is what an attempt's response says about who wrote it.
type Response struct {
	URL     string // of the request
	Headers string // as delivery.HeaderText writes them
	Body    []byte // the start
}

// rules are what lets requests through each filter. {host} and {path} are those of the endpoint's URL, {agent} is the
// User-Agent of requests.
var rules = map[delivery.BotFilter]string{
	delivery.Cloudflare: "In Cloudflare, open Security > Security rules, and create a custom rule with the expression " +
		"(http.host eq \"{host}\" and http.request.uri.path eq \"{path}\" and http.user_agent eq \"{agent}\") and the action Skip, with all options of bots and managed rules. " +
		"No rule skips Bot Fight Mode: turn it off, or add our addresses to the IP access rules with the action Allow.",
	delivery.AWSWAF: "In the web ACL of AWS WAF, add a rule with the action Allow before the bot control and managed rules: URI path exactly matches \"{path}\", and the header user-agent exactly matches \"{agent}\". " +
		"An IP set with our addresses is stricter than the header.",
	delivery.Akamai: "In Akamai's Bot Manager or App & API Protector, add our addresses to a network list, and add an allow exception for it on {host}{path}.",
	delivery.Imperva: "In Imperva's Cloud WAF, open the site's Security > Settings > Allowlist, and add an exception for our addresses or for the URL {path}. " +
		"In Bot Protection, add a client exception for the user agent \"{agent}\".",
	delivery.DataDome:    "In DataDome, create a custom rule with the response Allow for the path {path} and the user agent \"{agent}\", with our addresses if they are published.",
	delivery.Human:       "In HUMAN's console, open Policies > Custom rules, and allow the path {path} with the user agent \"{agent}\".",
	delivery.Sucuri:      "In the Sucuri firewall, open Access Control, and add {path} to the allowed URL paths, or our addresses to the allowed IP addresses.",
	delivery.Azure:       "In the Azure WAF policy, create a custom rule with the action Allow and the highest priority: RequestUri contains \"{path}\", and the header User-Agent equals \"{agent}\".",
	delivery.Vercel:      "In Vercel, open the project's Firewall > Configure, and create a rule with the action Bypass: request path equals {path}, and user agent equals \"{agent}\".",
	delivery.F5:          "In the BIG-IP security policy, find the support ID of the response in the event log, and add an allowed URL {path} with the violations that it lists turned off.",
	delivery.ModSecurity: "Find the rule's id in the server's error log at the time of the attempt, and exclude it: SecRule REQUEST_URI \"@streq {path}\" \"id:1000,phase:1,pass,nolog,ctl:ruleRemoveById=ID\".",
}

// filtered replaces the diagnosis of a response that a filter wrote instead of the receiver.
func filtered(d Diagnosis, kind endpoint.Kind, r delivery.Result, response Response) Diagnosis {
	if kind.Broker() || r.Status == 0 {
		return d
	}
	filter, says := delivery.FilterOf(r.Status, delivery.ParseHeaderText(response.Headers), response.Body)
	if filter == "" {
		return d
	}
	host, path := "", "/"
	if u, err := url.Parse(response.URL); err == nil {
		if host = u.Host; u.EscapedPath() != "" {
			path = u.EscapedPath()
		}
	}
	if d.Problem == "" {
		d.Problem = health.ProblemProtocol
	}
	d.Title = "Blocked by " + string(filter)
	d.Detail = fmt.Sprintf("The request didn't reach the receiver: %s in front of it returned %s. The evidence is %s.", filter, answer(r.Status), says)
	d.Fix = strings.NewReplacer("{host}", host, "{path}", path, "{agent}", signature.UserAgent).Replace(rules[filter])
	return d
}
