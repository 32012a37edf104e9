package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/google/uuid"

	"posthorn/domain/id"
)

// The rows of the scenario svix, and the most that emission through Svix's API can cost.
const (
	ownAPI      = "emission, own API"
	svixAPI     = "emission, Svix API"
	mostForSvix = 1.15
)

// emissionBySvix emits the same events to the same tenants through Posthorn's own API and through Svix's, in turns,
// with the same platform key.
func emissionBySvix(ctx context.Context, o *options, rep *report) error {
	return with(ctx, o, "svix", func(s *system) error {
		g, err := s.healthy(ctx)
		if err != nil {
			return err
		}
		own, err := s.platformGroup(g, s.platformKey, "own", "/api/v1/tenants/%s/events", false)
		if err != nil {
			return err
		}
		theirs, err := s.platformGroup(g, s.platformKey, "theirs", "/svix/api/v1/app/%s/msg", true)
		if err != nil {
			return err
		}
		groups, names := []*group{own, theirs}, []string{ownAPI, svixAPI}
		repeats := make([][]result, len(groups))
		for range o.repeats {
			for i, g := range groups {
				r, err := s.measure(ctx, g, load{events: o.events, connections: o.connections})
				if err != nil {
					return err
				}
				o.say("%s: %s", names[i], r)
				repeats[i] = append(repeats[i], r)
			}
		}
		for i, name := range names {
			rep.add(s.stem, name, median(repeats[i]))
		}
		return nil
	})
}

// publicID is the id of a tenant as the API writes it.
func publicID(tenant string) (string, error) {
	parsed, err := uuid.Parse(tenant)
	return id.Tenant.Format(id.UUID(parsed)), err
}

// platformGroup is a group to which a platform key emits, at a path with the tenant's id in it.
func (s *system) platformGroup(g *group, key, name, path string, svix bool) (*group, error) {
	out := &group{tenants: g.tenants, fan: g.fan, byPath: true, plan: filepath.Join(s.dir, name+".json")}
	for i, tenant := range g.tenants {
		tenantID, err := publicID(tenant)
		if err != nil {
			return nil, err
		}
		out.targets = append(out.targets, target{
			Key:  key,
			Type: g.targets[i].Type,
			Path: fmt.Sprintf(path, tenantID),
			Lead: lead(g.targets[i].Type, svix),
		})
	}
	text, err := json.Marshal(out.targets)
	if err != nil {
		return nil, err
	}
	return out, os.WriteFile(out.plan, text, 0o600)
}

// lead is an event up to its data, as Posthorn's own API takes it or Svix's.
func lead(eventType string, svix bool) string {
	if svix {
		return fmt.Sprintf(`{"eventType":"%s","payload":`, eventType)
	}
	return fmt.Sprintf(`{"type":"%s","data":`, eventType)
}

// body is an event as an API takes it.
func (t target) body(emittedNs, k int64, pad []byte) []byte {
	first := t.Lead
	if first == "" {
		first = lead(t.Type, false)
	}
	return fmt.Appendf(nil, `%s{"emitted_ns":%d,"order_id":"%s","pad":"%s"}}`, first, emittedNs, order(k), pad)
}

// order is the id of an event's order, which its data has.
func order(k int64) string { return "ord_" + strconv.FormatInt(k, 10) }
