module example.com/mylease

go 1.26.0

require fencepost v0.0.0

replace fencepost => ../..
