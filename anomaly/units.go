package anomaly

// LogRatio is the natural logarithm of a ratio of two times: 0.4 is half as long again.
type LogRatio = float64

// LogWealth is the natural logarithm of what a sequential test has won against its subject being healthy.
type LogWealth = float64

// Share is a part of a whole, 0 to 1.
type Share = float64
