module fairway

go 1.26
