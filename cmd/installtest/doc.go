// Package installtest builds fairway's packages, installs them into clean roots, and walks docs/install.md. It holds
// tests only.
package installtest
