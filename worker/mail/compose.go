package mail

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	netmail "net/mail"

	"posthorn/db/accounts"
	"posthorn/db/seal"
	"posthorn/db/sql"
	"posthorn/domain/mail"
	"posthorn/views/emails"
)

// compose creates the mail of a row. The same row gives the same mail, byte for byte, so that the provider recognizes a
// second try.
func compose(row sql.ClaimMailsRow, ring *seal.Ring, from string) (Message, error) {
	if _, err := netmail.ParseAddress(row.Recipient); err != nil {
		return Message{}, fmt.Errorf("the recipient's address is none: %w", err)
	}
	data, err := accounts.MailText(row, ring)
	if err != nil {
		return Message{}, err
	}
	letter, err := letterOf(row.Kind, data)
	if err != nil {
		return Message{}, err
	}
	var html bytes.Buffer
	if err := emails.Page(letter).Render(context.Background(), &html); err != nil {
		return Message{}, err
	}
	m := Message{
		ID:      row.ID,
		Key:     row.Key,
		Kind:    row.Kind,
		From:    from,
		To:      row.Recipient,
		Subject: letter.Subject,
		HTML:    html.String(),
		Text:    letter.Text(),
		At:      row.CreatedAt,
		Headers: map[string]string{"Auto-Submitted": "auto-generated"}, // RFC 3834: no automatic replies, please
	}
	if letter.Unsubscribe != "" {
		m.Headers["List-Unsubscribe"] = "<" + letter.Unsubscribe + ">"
		m.Headers["List-Unsubscribe-Post"] = "List-Unsubscribe=One-Click" // RFC 8058
	}
	return m, nil
}

// letterOf fills the template of a kind.
func letterOf(kind mail.Kind, data json.RawMessage) (emails.Letter, error) {
	switch kind {
	case mail.VerifyAddress:
		return fill(data, emails.VerifyAddress)
	case mail.ResetPassword:
		return fill(data, emails.ResetPassword)
	case mail.AccountExists:
		return fill(data, emails.AccountExists)
	case mail.Invitation:
		return fill(data, emails.Invitation)
	case mail.OperatorAccess:
		return fill(data, emails.OperatorAccess)
	case mail.SignInAlert:
		return fill(data, emails.SignInAlert)
	case mail.ConfirmContact:
		return fill(data, emails.ConfirmContact)
	case mail.OperatorAlert:
		return fill(data, emails.OperatorAlert)
	case mail.Notice, mail.Digest:
		var n mail.NoticeData
		if err := json.Unmarshal(data, &n); err != nil {
			return emails.Letter{}, err
		}
		return emails.Notice(n)
	}
	return emails.Letter{}, fmt.Errorf("there is no template for %q", kind)
}

func fill[T any](data json.RawMessage, template func(T) emails.Letter) (emails.Letter, error) {
	var d T
	if err := json.Unmarshal(data, &d); err != nil {
		return emails.Letter{}, err
	}
	return template(d), nil
}
