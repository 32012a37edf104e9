package auth

import (
	"net/http"
	"net/url"
	"strconv"

	"posthorn/domain/account"
	"posthorn/domain/fault"
	"posthorn/handlers"
	"posthorn/views/components"
	"posthorn/views/pages"
)

// Fields that forms share, with the attributes that password managers need.
func emailField(value string) components.FieldProps {
	return components.FieldProps{Name: "email", Label: "Email address", Type: "email", Complete: "username", Value: value, Required: true}
}

func passwordField() components.FieldProps {
	return components.FieldProps{Name: "password", Label: "Password", Type: "password", Complete: "current-password", Required: true}
}

func newPasswordField() components.FieldProps {
	return components.FieldProps{
		Name:     "password",
		Label:    "New password",
		Type:     "password",
		Complete: "new-password",
		Required: true,
		Hint:     "At least 8 characters. Tip: use three or four random words.",
	}
}

func nameField(label, value string) components.FieldProps {
	return components.FieldProps{Name: "name", Label: label, Complete: "name", Value: value, Required: true, MaxLength: account.MaxName}
}

func codeField() components.FieldProps {
	return components.FieldProps{
		Name:     "code",
		Label:    "Code",
		Complete: "one-time-code",
		Required: true,
		Mono:     true,
		Width:    "medium",
		Focus:    true,
		Attrs:    map[string]any{"inputmode": "text"},
	}
}

// show renders a form.
func show(c *handlers.Call, v pages.Form) error { return c.Render(http.StatusOK, pages.FormPage(v)) }

// refuse shows a form again with its errors. Errors that are not about the input are returned.
func refuse(c *handlers.Call, v pages.Form, err error) error {
	if err := handlers.NotInput(err); err != nil {
		return err
	}
	if wait := fault.As(err).RetryAfter; wait > 0 {
		c.Writer.Header().Set("Retry-After", strconv.Itoa(wait))
	}
	return c.Render(handlers.Status(err), pages.FormPage(v.WithErrors(handlers.WrongFields(err))))
}

func nextQuery(next string) string {
	if next == "" {
		return ""
	}
	return "?next=" + url.QueryEscape(next)
}

// join merges several invalid fields into one error.
func join(errs ...error) error {
	var fields []fault.Field
	for _, err := range errs {
		if e := fault.As(err); e != nil {
			fields = append(fields, e.Fields...)
		} else if err != nil {
			return err
		}
	}
	if len(fields) == 0 {
		return nil
	}
	return fault.InvalidFields(fields)
}
