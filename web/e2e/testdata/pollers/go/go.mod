module pollers

go 1.26.0

require github.com/svix/svix-webhooks v1.99.1
