// Prints the fields of the protobuf messages whose names come on standard input, one a line, as JSON:
// {message: {field: [number, kind, shape]}}. See ../envoy-descriptors.ts.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

func main() {
	found := map[string]map[string][]any{}
	names := bufio.NewScanner(os.Stdin)
	for names.Scan() {
		descriptor, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(names.Text()))
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", names.Text(), err)
			os.Exit(1)
		}
		fields := map[string][]any{}
		list := descriptor.(protoreflect.MessageDescriptor).Fields()
		for i := range list.Len() {
			field := list.Get(i)
			shape, value := "one", field
			if field.IsMap() {
				shape, value = "map", field.MapValue()
			} else if field.IsList() {
				shape = "list"
			}
			kind := value.Kind().String()
			if value.Message() != nil {
				kind = string(value.Message().FullName())
			}
			fields[string(field.Name())] = []any{field.Number(), kind, shape}
		}
		found[names.Text()] = fields
	}
	out := json.NewEncoder(os.Stdout)
	out.SetIndent("", " ")
	if err := out.Encode(found); err != nil {
		panic(err)
	}
}
