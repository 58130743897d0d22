module earshot/sdk/go

go 1.24
