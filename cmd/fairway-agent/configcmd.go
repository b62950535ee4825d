package main

import (
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

func newConfig(path *string) *cobra.Command {
	return &cobra.Command{
		Use:   "config",
		Short: "Print the effective configuration, every setting explained",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			conf, err := loadConfig(*path)
			if err != nil {
				return err
			}
			printTable(c.OutOrStdout(), "", reflect.ValueOf(conf))
			return nil
		},
	}
}

// printTable writes a struct as TOML: its settings with their help, then its tables.
func printTable(w io.Writer, name string, v reflect.Value) {
	var tables []int
	header := name != ""
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if f.Type.Kind() == reflect.Struct || f.Type.Kind() == reflect.Map {
			tables = append(tables, i)
			continue
		}
		if header {
			fmt.Fprintf(w, "\n[%s]\n", name)
			header = false
		}
		fmt.Fprintf(w, "# %s\n%s = %s\n", f.Tag.Get("help"), f.Tag.Get("toml"), literal(v.Field(i).Interface()))
	}
	for _, i := range tables {
		if f := v.Type().Field(i); f.Type.Kind() == reflect.Map {
			printMap(w, name+"."+f.Tag.Get("toml"), f.Tag.Get("help"), v.Field(i).Interface().(map[string]string))
			continue
		}
		printTable(w, strings.TrimPrefix(name+"."+v.Type().Field(i).Tag.Get("toml"), "."), v.Field(i))
	}
}

// printMap writes a table whose keys are the site's.
func printMap(w io.Writer, name, help string, m map[string]string) {
	fmt.Fprintf(w, "\n# %s\n[%s]\n", help, name)
	for _, key := range slices.Sorted(maps.Keys(m)) {
		fmt.Fprintf(w, "%q = %q\n", key, m[key])
	}
}

// literal writes a value as TOML.
func literal(v any) string {
	switch v := v.(type) {
	case string:
		return fmt.Sprintf("%q", v)
	case time.Duration:
		return fmt.Sprintf("%q", v.String())
	case []string:
		quoted := make([]string, len(v))
		for i, s := range v {
			quoted[i] = fmt.Sprintf("%q", s)
		}
		return "[" + strings.Join(quoted, ", ") + "]"
	}
	return fmt.Sprint(v)
}
