//! The documents that do not depend on the catalog, and those of groups.

use serde_json::{Map, Value, json};

use super::{
    SchemaDialect,
    document::{get_item, group_tag, small_document},
    names::{META, capitalized},
    operation::MediaContent,
    paths::BUILTIN_MEDIA,
};

const INFO: &str = "io.k8s.apimachinery.pkg.version.Info";

/// `/openapi/v3/version`
pub(super) fn version() -> Vec<u8> {
    let content = MediaContent { media: vec!["application/json"], of: Some(INFO.to_owned()) };
    let get = get_item("version", "getCodeVersion", "get the version information for this server", &content);
    small_document(&json!({ "/version/": get }), &json!({ INFO: info() }))
}

fn info() -> Value {
    const REQUIRED: [&str; 9] =
        ["major", "minor", "gitVersion", "gitCommit", "gitTreeState", "buildDate", "goVersion", "compiler", "platform"];
    const OF: [(&str, &str); 6] = [
        ("major", "Major is the major version of the binary version"),
        ("minor", "Minor is the minor version of the binary version"),
        ("emulationMajor", "EmulationMajor is the major version of the emulation version"),
        ("emulationMinor", "EmulationMinor is the minor version of the emulation version"),
        ("minCompatibilityMajor", "MinCompatibilityMajor is the major version of the minimum compatibility version"),
        ("minCompatibilityMinor", "MinCompatibilityMinor is the minor version of the minimum compatibility version"),
    ];
    let mut properties = Map::new();
    for name in REQUIRED {
        properties.insert(name.to_owned(), text());
    }
    for (name, description) in OF {
        let mut property = json!({"type": "string", "description": description});
        if let Some(property) = property.as_object_mut().filter(|_| REQUIRED.contains(&name)) {
            property.insert("default".into(), "".into());
        }
        properties.insert(name.to_owned(), property);
    }
    json!({
        "description": "Info contains versioning information. how we'll want to distribute that information.",
        "type": "object",
        "required": REQUIRED,
        "properties": properties,
    })
}

/// `/openapi/v3/api`
pub(super) fn core_versions() -> Vec<u8> {
    let get = get_item("core", "getCoreAPIVersions", "get available API versions", &content("APIVersions"));
    let versions = object(
        "APIVersions",
        &["versions", "serverAddressByClientCIDRs"],
        json!({
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "serverAddressByClientCIDRs": list("ServerAddressByClientCIDR"),
            "versions": {"type": "array", "items": text(), "x-kubernetes-list-type": "atomic"},
        }),
    );
    let addresses = addresses();
    small_document(&json!({ "/api/": get }), &[versions, addresses].into_iter().collect::<Map<_, _>>().into())
}

/// `/openapi/v3/apis`
pub(super) fn groups() -> Vec<u8> {
    let get = get_item("apis", "getAPIVersions", "get available API versions", &content("APIGroupList"));
    let groups = object(
        "APIGroupList",
        &["groups"],
        json!({"apiVersion": {"type": "string"}, "groups": list("APIGroup"), "kind": {"type": "string"}}),
    );
    let schemas = [groups].into_iter().chain(group_schemas());
    small_document(&json!({ "/apis/": get }), &schemas.collect::<Map<_, _>>().into())
}

/// `/openapi/v3/apis/{group}`
pub(super) fn group(group: &str) -> Vec<u8> {
    let tag = group_tag(group);
    let id = format!("get{}APIGroup", capitalized(&tag));
    let get = get_item(&tag, &id, "get information of a group", &content("APIGroup"));
    small_document(
        &json!({ format!("/apis/{group}/"): get }),
        &group_schemas().into_iter().collect::<Map<_, _>>().into(),
    )
}

fn group_schemas() -> [(String, Value); 3] {
    let version = json!({"allOf": [reference("GroupVersionForDiscovery")], "default": {}});
    let group = object(
        "APIGroup",
        &["name", "versions"],
        json!({
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "name": text(),
            "preferredVersion": version,
            "serverAddressByClientCIDRs": list("ServerAddressByClientCIDR"),
            "versions": list("GroupVersionForDiscovery"),
        }),
    );
    let version = object(
        "GroupVersionForDiscovery",
        &["groupVersion", "version"],
        json!({"groupVersion": text(), "version": text()}),
    );
    [group, version, addresses()]
}

fn addresses() -> (String, Value) {
    let properties = json!({"clientCIDR": text(), "serverAddress": text()});
    object("ServerAddressByClientCIDR", &["clientCIDR", "serverAddress"], properties)
}

/// A type of discovery. Those with a kind have it in the schema.
fn object(name: &str, required: &[&str], properties: Value) -> (String, Value) {
    let kind = properties.get("kind").map(|_| json!([{"group": "", "version": "v1", "kind": name}]));
    let mut schema = json!({"type": "object", "required": required, "properties": properties});
    if let (Some(schema), Some(kind)) = (schema.as_object_mut(), kind) {
        schema.insert("x-kubernetes-group-version-kind".into(), kind);
    }
    (format!("{META}.{name}"), schema)
}

fn text() -> Value {
    json!({"type": "string", "default": ""})
}

fn reference(name: &str) -> Value {
    json!({ "$ref": SchemaDialect::V3.address(&format!("{META}.{name}")) })
}

fn list(of: &str) -> Value {
    json!({"type": "array", "items": reference(of), "x-kubernetes-list-type": "atomic"})
}

fn content(name: &str) -> MediaContent {
    MediaContent { media: BUILTIN_MEDIA.to_vec(), of: Some(format!("{META}.{name}")) }
}
