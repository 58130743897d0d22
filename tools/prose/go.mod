module earshot/tools/prose

go 1.26.0
