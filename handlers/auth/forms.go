package auth

import (
	"net/http"
	"net/url"

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
		Name: "password", Label: "New password", Type: "password", Complete: "new-password", Required: true,
		Hint: "At least 8 characters. Tip: use three or four random words.",
	}
}

func codeField() components.FieldProps {
	return components.FieldProps{
		Name: "code", Label: "Code", Complete: "one-time-code", Required: true, Mono: true, Width: "medium", Focus: true,
		Attrs: map[string]any{"inputmode": "text"},
	}
}

// show renders a form.
func show(c *handlers.Call, v pages.Form) error { return c.Render(http.StatusOK, pages.FormPage(v)) }

// refuse shows a form again with its errors. Errors that are not about the input are returned.
func refuse(c *handlers.Call, v pages.Form, err error) error {
	wrong, err := handlers.WrongFields(err), handlers.NotInput(err)
	if err != nil {
		return err
	}
	return c.Render(http.StatusBadRequest, pages.FormPage(v.WithErrors(wrong)))
}

// refuseAs is refuse with the error's own status.
func refuseAs(c *handlers.Call, v pages.Form, e *fault.Error) error {
	if e.RetryAfter > 0 {
		c.Writer.Header().Set("Retry-After", "60")
	}
	return c.Render(handlers.Status(e), pages.FormPage(v.WithErrors(map[string]string{"": e.Detail})))
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
