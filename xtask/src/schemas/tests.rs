use serde_json::json;

use super::*;

fn types() -> BTreeMap<String, OpenApiType> {
    let meta = "#/components/schemas/io.k8s.meta.v1.ObjectMeta";
    let thing = json!({
        "type": "object",
        "required": ["size", "list"],
        "properties": {
            "metadata": {"allOf": [{"$ref": meta}], "default": {}},
            "size": {"type": "integer", "format": "int32", "default": 0},
            "mode": {"type": "string", "enum": ["", "cert sign"], "default": "TCP"},
            "list": {
                "type": "array", "items": {"$ref": "#/components/schemas/io.k8s.a.v1.Item"},
                "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a", "b"],
                "x-kubernetes-patch-strategy": "merge", "x-kubernetes-patch-merge-key": "a",
            },
            "data": {"type": "object", "additionalProperties": {"type": "string", "format": "byte"}},
            "time": {"$ref": "#/components/schemas/io.k8s.meta.v1.Time"},
        },
        "x-kubernetes-group-version-kind": [{"group": "", "version": "v1", "kind": "Thing"}],
    });
    let item = json!({"type": "object", "properties": {"a": {"type": "boolean"}}, "x-kubernetes-map-type": "atomic"});
    let named = [
        ("io.k8s.a.v1.Thing", thing),
        ("io.k8s.a.v1.Item", item),
        ("io.k8s.meta.v1.ObjectMeta", json!({"type": "object"})),
        ("io.k8s.meta.v1.Time", json!({"type": "string", "format": "date-time"})),
    ];
    let declared = |schema: Value| OpenApiType { kinds: kinds(&schema).collect(), schema };
    named.into_iter().map(|(name, schema)| (name.to_owned(), declared(schema))).collect()
}

const EXPECTED: &str = r#"
package io.k8s.a.v1
type Item map=atomic
  a boolean
type Thing kinds=v1
  data {}bytes omit
  list []Item required null list=map patch=merge key=a keys=a,b
  metadata io.k8s.meta.v1.ObjectMeta zero
  mode string default="TCP" enum=|cert sign
  size int32 required zero
  time time

package io.k8s.meta.v1
type ObjectMeta
type Time = time
"#;

#[test]
fn a_document_becomes_a_table() {
    assert_eq!(render_table(&types(), &FieldMarks::new()).strip_prefix(TABLE_HEADER), Some(EXPECTED));
}

#[test]
fn a_table_keeps_what_openapi_does_not_say() {
    let written = render_table(&types(), &FieldMarks::new())
        .replace("time time", "time time zero")
        .replace("bytes omit", "bytes null");
    assert_eq!(render_table(&types(), &table_line::parse_marks(&written)), written);
}

#[test]
fn go_says_which_fields_are_left_out() {
    let source = "
type Thing struct {
	// Size is a `pointer`.
	Size *int32 `json:\"size,omitempty\" protobuf:\"x\"`
	List []Item `json:\"list\"`
	metav1.TypeMeta `json:\",inline\"`
	Mode Mode `json:\"mode,omitempty\"`
	Time metav1.Time `json:\"time,omitempty,omitzero\"`
}
";
    let directory = std::env::temp_dir().join(format!("kubewake-schemas-{}", std::process::id()));
    for (package, text) in [("a/v1", source), ("meta/v1", "")] {
        fs::create_dir_all(directory.join(package)).unwrap();
        fs::write(directory.join(package).join("types.go"), text).unwrap();
    }
    let marks = go::read_marks(&directory, &types()).unwrap();
    fs::remove_dir_all(&directory).unwrap();
    let mark = |field: &str| marks.get(&("io.k8s.a.v1.Thing".to_owned(), field.to_owned())).map(String::as_str);
    assert_eq!(mark("size"), Some(""));
    assert_eq!(mark("list"), Some("null"));
    assert_eq!(mark("mode"), Some("omit"));
    assert_eq!(mark("time"), Some("omit"));
    assert_eq!(mark("data"), None);
}
