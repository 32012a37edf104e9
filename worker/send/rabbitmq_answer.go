package send

import (
	"context"
	"errors"
	"net"
	"strings"

	amqp "github.com/rabbitmq/amqp091-go"

	"posthorn/domain/delivery"
)

// loginError is a failed login, with the reason why the connection could not be read further.
type loginError struct {
	err  error
	read *error
}

func (e *loginError) Error() string { return e.err.Error() }

// rabbitConfirmed is the result of a message that the broker has confirmed and routed to a queue.
func rabbitConfirmed(exchange, key string) said {
	return said{result: delivery.OfRabbitMQ(""), excerpt: excerpt(map[string]string{"exchange": exchange, "routing_key": key})}
}

// rabbitRejected is a response of the broker by its name.
func rabbitRejected(name, description string) said {
	return said{
		result:  delivery.OfRabbitMQ(name),
		text:    "the broker returned " + name,
		excerpt: excerpt(map[string]string{"error": name, "description": description}),
	}
}

func rabbitBlocked() said {
	return said{result: delivery.OfRabbitMQ("BLOCKED"), text: "the broker blocks publishers: it is low on memory or disk space"}
}

// rabbitSaid describes an error of the client in plain words, without an address.
func rabbitSaid(err error) said {
	var dial *dialError
	var login *loginError
	var closed *amqp.Error
	var network net.Error
	switch {
	case errors.As(err, &dial):
		return rabbitFail(dial.failure, dial.text)
	case errors.As(err, &login):
		return rabbitLogin(login)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled), errors.As(err, &network) && network.Timeout():
		s := rabbitFail(delivery.FailTimeout, "no confirmation in time")
		s.vague = true
		return s
	case errors.As(err, &closed) && closed.Server:
		return rabbitRejected(rabbitName(closed), closed.Reason)
	}
	return rabbitFail(delivery.FailReset, "the broker closed the connection before a confirmation arrived")
}

// rabbitName is the name with which the reason of a broker begins, as in "NOT_FOUND - no exchange 'a' in vhost '/'".
func rabbitName(e *amqp.Error) string {
	name, _, _ := strings.Cut(e.Reason, " ")
	if name == "" || len(name) > 40 || strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_") != "" {
		return "INTERNAL_ERROR"
	}
	return name
}

func rabbitLogin(e *loginError) said {
	var said *amqp.Error
	answered := errors.As(e.err, &said) && said.Server
	var network net.Error
	if !answered && (errors.As(e.err, &network) && network.Timeout() || e.read != nil && (errors.Is(*e.read, net.ErrClosed) || errors.As(*e.read, &network) && network.Timeout())) {
		return rabbitFail(delivery.FailTimeout, "the server didn't respond in time") // we closed it, or stopped waiting
	}
	switch {
	case answered && rabbitName(said) == "ACCESS_REFUSED":
		return rabbitRejected(delivery.LoginRefused, said.Reason)
	case answered:
		return rabbitRejected(rabbitName(said), said.Reason)
	case errors.Is(e.err, amqp.ErrCredentials) && e.read != nil && isClosed(*e.read):
		return rabbitRejected(delivery.LoginRefused, "the broker closed the connection at the login")
	case errors.Is(e.err, amqp.ErrSASL):
		return rabbitRejected(delivery.LoginRefused, "the broker offers no login by user name and password (PLAIN)")
	case e.read != nil && isClosed(*e.read):
		return rabbitFail(delivery.FailReset, "the broker closed the connection at its start: it probably requires TLS")
	}
	return rabbitFail(delivery.FailProtocol, "the server does not use AMQP 0-9-1")
}

func rabbitFail(f delivery.Failure, text string) said {
	return said{result: delivery.Result{Failure: f}, text: text}
}
