//! From the bytes of a request to an object of its resource.

use std::sync::Arc;

use serde_json::Value;

use super::call::On;
use crate::{
    api::{GroupKind, GroupVersion, Status, field, go, meta::set_meta},
    codec::{
        Media, body,
        content_type::{self, PatchType},
        json,
        query::{FieldValidation, WriteOptions},
        yaml,
    },
    crd::versions,
    registry::Resource,
    schema::{Schema, decode, defaults, prune},
};

/// The object of a create or an update.
pub fn object(on: On<'_>, bytes: &[u8], options: &WriteOptions) -> Result<Value, Status> {
    let media = content_type::object(on.content_type())?;
    object_as(on, media, bytes, options)
}

/// The configuration of an apply.
#[derive(Debug)]
pub struct Applied {
    /// What is in it is told apart from what is not, so that nothing is filled in or dropped here; its types, and whether it says that
    /// it is of the path's kind, are checked where it is merged.
    pub value: Value,
    /// Keys that are there more than once, as one message.
    duplicates: Option<String>,
}

impl Applied {
    /// What strict field validation says of it. kube-apiserver does so after the merge.
    pub fn check_duplicates(&self, on: On<'_>, options: &WriteOptions) -> Result<(), Status> {
        let Some(problem) = &self.duplicates else { return Ok(()) };
        match options.field_validation {
            FieldValidation::Strict => {
                let why = format!("error strict decoding patch: error converting YAML to JSON: {problem}");
                return Err(Status::bad_request(why));
            }
            FieldValidation::Warn => {
                body::warnings(std::slice::from_ref(problem)).for_each(|warning| on.call.warnings.add(warning));
            }
            FieldValidation::Ignore => {}
        }
        Ok(())
    }
}

/// Reads the configuration of an apply, which is YAML and therefore may be JSON.
pub fn applied(bytes: &[u8]) -> Result<Applied, Status> {
    let decoded =
        yaml::decode(bytes).map_err(|error| undecodable(&format!("error converting YAML to JSON: {error}")))?;
    let duplicates = yaml::strict_error(&decoded.duplicates);
    let value = match decoded.value {
        value @ Value::Object(_) => value,
        Value::Null => Value::Object(serde_json::Map::new()),
        other => {
            let found = go::json_kind(&other);
            let why = format!("json: cannot unmarshal {found} into Go value of type map[string]interface {{}}");
            return Err(undecodable(&format!("error unmarshaling JSON: while decoding JSON: {why}")));
        }
    };
    Ok(Applied { value, duplicates })
}

fn undecodable(why: &str) -> Status {
    Status::bad_request(format!("error decoding patch: {why}"))
}

fn object_as(on: On<'_>, media: Media, bytes: &[u8], options: &WriteOptions) -> Result<Value, Status> {
    let mut decoded = body::decode(media, bytes, &on.wanted_gv(), on.wanted_kind())?;
    let mut value = decoded.value.take();
    if value.is_null() {
        value = Value::Object(serde_json::Map::new());
    }
    let found = Found::new(on, &value, bytes)?;
    let reset = resets_managers(&value);
    let refuse = |why: &str| body::cannot_be_handled(&found.kind, &found.gv().version, on.wanted_kind(), why);
    let unknown = found.typed(on, &mut value).map_err(|why| refuse(&why))?;
    let problems = decoded.problems(bytes, &unknown);
    match options.field_validation {
        FieldValidation::Strict if !problems.is_empty() => return Err(refuse(&body::strict_error(&problems))),
        FieldValidation::Warn => body::warnings(&problems).for_each(|warning| on.call.warnings.add(warning)),
        FieldValidation::Strict | FieldValidation::Ignore => {}
    }
    found.check_version(on)?;
    if let Some(object) = value.as_object_mut() {
        object.insert("kind".into(), found.kind.into());
        object.insert("apiVersion".into(), found.api_version.into());
    }
    if let Some(reset) = reset {
        set_meta(&mut value, "managedFields", reset);
    }
    on.to_stored(&mut value);
    Ok(value)
}

/// What a body says that it is.
struct Found {
    kind: String,
    api_version: String,
}

impl Found {
    /// A body of a built-in kind that does not say what it is, is of the path's kind, and one of another kind is refused. Custom
    /// resources must say it; what they say is compared later.
    fn new(on: On<'_>, value: &Value, bytes: &[u8]) -> Result<Self, Status> {
        let text = |field: &str| value.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (kind, api_version) = (text("kind"), text("apiVersion"));
        if is_custom(on) {
            if kind.is_empty() {
                let why = format!("Object 'Kind' is missing in '{}'", String::from_utf8_lossy(bytes));
                return Err(body::unrecognized(on.wanted_kind(), &why, bytes));
            }
            return Ok(Self { kind, api_version });
        }
        let or = |given: String, wanted: String| if given.is_empty() { wanted } else { given };
        let found =
            Self { kind: or(kind, on.wanted_kind().into()), api_version: or(api_version, on.wanted_gv().to_string()) };
        found.check_kind(on)?;
        Ok(found)
    }

    fn gv(&self) -> GroupVersion {
        GroupVersion::parse(&self.api_version).unwrap_or_else(|| GroupVersion::new("", &self.api_version))
    }

    /// Checks types, drops what the schema does not know, and fills in its defaults. Gives the paths of what it dropped.
    fn typed(&self, on: On<'_>, value: &mut Value) -> Result<Vec<String>, String> {
        if is_custom(on) {
            return pruned(value, versions::schema_of_body(on.resource, &self.kind, &self.gv()));
        }
        decode::check(value, on.wanted_schema()).map_err(|error| error.to_string())
    }

    /// Whether the server can read it as the path's kind. Where it knows both kinds, but not how to make one of the other, it says so.
    fn check_kind(&self, on: On<'_>) -> Result<(), Status> {
        let (gv, wanted_gv) = (self.gv(), on.wanted_gv());
        if self.kind == on.wanted_kind() && gv == wanted_gv {
            return Ok(());
        }
        let catalog = &on.call.catalog;
        let same = |found: &Arc<Resource>| found.group_kind() == on.shown().group_kind();
        if on.path.subresource.is_empty() && catalog.by_kind(&gv, &self.kind).is_some_and(same) {
            // It is another shape of the same kind: only its version is wrong.
            return self.check_version(on);
        }
        let why = if is_registered(on, &gv, &self.kind) {
            unknown_conversion(&gv.version, &self.kind, &wanted_gv, on.wanted_kind())
        } else {
            not_registered(on, &self.kind, &self.api_version)
        };
        Err(body::cannot_be_handled(&self.kind, &gv.version, on.wanted_kind(), &why))
    }

    fn check_version(&self, on: On<'_>) -> Result<(), Status> {
        let wanted = on.wanted_gv().to_string();
        if self.api_version == wanted {
            return Ok(());
        }
        let found = &self.api_version;
        let message =
            format!("the API version in the data ({found}) does not match the expected API version ({wanted})");
        Err(Status::bad_request(message))
    }
}

fn not_registered(on: On<'_>, kind: &str, version: &str) -> String {
    let (kind, version) = (go::quote(kind), go::quote(version));
    format!("no kind {kind} is registered for version {version} in scheme {:?}", scheme(on))
}

/// Whether the body is a custom resource.
fn is_custom(on: On<'_>) -> bool {
    on.resource.custom.is_some() && !on.is_scale()
}

/// Whether kube-apiserver has a type for a kind at this path. Definitions have a server of their own, which knows no other kinds.
fn is_registered(on: On<'_>, gv: &GroupVersion, kind: &str) -> bool {
    let mut known = on.call.catalog.of(gv).filter(|resource| resource.custom.is_none()).peekable();
    if known.peek().is_none() || (is_definition(on) && gv.group != on.resource.gv.group) {
        return false;
    }
    EVERYWHERE.contains(&kind)
        || (kind == "List" && gv.group.is_empty())
        || known.any(|resource| {
            let parts = resource.subresources.iter().filter(|part| part.gv.is_none());
            &*resource.kind == kind || &*resource.list_kind == kind || parts.into_iter().any(|part| &*part.kind == kind)
        })
}

/// Kinds that every version of every group has.
const EVERYWHERE: [&str; 8] = [
    "CreateOptions",
    "DeleteOptions",
    "GetOptions",
    "ListOptions",
    "PatchOptions",
    "Status",
    "UpdateOptions",
    "WatchEvent",
];

fn is_definition(on: On<'_>) -> bool {
    &*on.resource.gv.group == "apiextensions.k8s.io"
}

/// Where kube-apiserver keeps its types, as its messages say.
fn scheme(on: On<'_>) -> &'static str {
    match is_definition(on) {
        true => "k8s.io/apiextensions-apiserver/pkg/apiserver/apiserver.go:56",
        false => "pkg/api/legacyscheme/scheme.go:30",
    }
}

/// What kube-apiserver says of a kind that it cannot make another kind of, by the names of their Go types.
fn unknown_conversion(version: &str, kind: &str, wanted_gv: &GroupVersion, wanted: &str) -> String {
    let package = match wanted_gv.group.split('.').next().unwrap_or_default() {
        "" | "events" => "core",
        group => group,
    };
    format!("converting ({version}.{kind}) to ({package}.{wanted}): unknown conversion")
}

/// What a patch has made, read again as if it had been sent.
pub fn patched(
    on: On<'_>,
    value: &mut Value,
    patch: &[u8],
    form: PatchType,
    options: &WriteOptions,
) -> Result<(), Status> {
    let before = shown_object(value);
    let invalid = |shown: &str, why: &str| {
        let error = field::Error::invalid("patch", &shown.into(), why);
        Status::invalid(&GroupKind::new("", ""), "", &[error])
    };
    match form {
        // Only its fields are merged: what it says that it is does not count.
        PatchType::StrategicMerge => set_kind(on, value),
        _ => check_patched_kind(on, value).map_err(|why| invalid(&before, &why))?,
    }
    let unknown = typed(on, value).map_err(|why| invalid(&before, &why))?;
    let mut problems = patch_problems(patch, form);
    problems.extend(unknown.iter().map(|path| body::unknown_field(path)));
    match options.field_validation {
        FieldValidation::Strict if !problems.is_empty() => {
            let shown = match form {
                PatchType::StrategicMerge => shown_map(patch),
                _ => before,
            };
            Err(invalid(&shown, &body::strict_error(&problems)))
        }
        FieldValidation::Warn => {
            body::warnings(&problems).for_each(|warning| on.call.warnings.add(warning));
            Ok(())
        }
        FieldValidation::Strict | FieldValidation::Ignore => Ok(()),
    }
}

/// What strict decoding says of a patch itself: fields that are there twice, and fields that an operation does not have.
fn patch_problems(patch: &[u8], form: PatchType) -> Vec<String> {
    // An apply has told already; what cannot be read was refused.
    let Some(decoded) = json::decode(patch).ok().filter(|_| form != PatchType::Apply) else { return Vec::new() };
    let mut problems: Vec<String> = decoded.duplicates.iter().map(|path| body::duplicate_field(path)).collect();
    if form == PatchType::Json {
        let operations = decoded.value.as_array().into_iter().flatten().enumerate();
        let fields =
            operations.flat_map(|(at, one)| one.as_object().into_iter().flatten().map(move |(name, _)| (at, name)));
        let unknown = fields.filter(|(_, name)| !matches!(name.as_str(), "op" | "path" | "from" | "value"));
        problems.extend(unknown.map(|(at, name)| body::unknown_field(&format!("[{at}].{name}"))));
        problems.iter_mut().for_each(|problem| problem.insert_str(0, "json patch "));
    }
    problems
}

fn set_kind(on: On<'_>, value: &mut Value) {
    if let Some(object) = value.as_object_mut().filter(|_| !is_custom(on)) {
        object.insert("kind".into(), on.wanted_kind().into());
        object.insert("apiVersion".into(), on.wanted_gv().to_string().into());
    }
}

/// Checks types, drops what the schema does not know, and fills in its defaults. Gives the paths of what it dropped.
fn typed(on: On<'_>, value: &mut Value) -> Result<Vec<String>, String> {
    let schema = on.wanted_schema();
    if is_custom(on) { pruned(value, schema) } else { decode::check(value, schema).map_err(|error| error.to_string()) }
}

/// The same for a custom resource, whose types are checked when it is validated.
fn pruned(value: &mut Value, schema: &Schema) -> Result<Vec<String>, String> {
    let dropped = prune::prune(value, schema).map_err(|error| error.to_string())?;
    defaults::apply_defaults(value, schema);
    Ok(dropped)
}

/// A patch as Go prints a map.
fn shown_map(patch: &[u8]) -> String {
    serde_json::from_slice(patch).map_or_else(|_| String::new(), |patch| go::printed(&patch))
}

/// Whether the writer asks for an end of the bookkeeping about managers: by an empty list, or a list of one empty entry. Both would
/// look like no list at all once they are checked.
fn resets_managers(object: &Value) -> Option<Value> {
    let entries = object.pointer("/metadata/managedFields")?;
    let reset = match entries.as_array()?.as_slice() {
        [] => true,
        [one] => one.as_object().is_some_and(serde_json::Map::is_empty),
        _ => false,
    };
    reset.then(|| entries.clone())
}

/// A patch cannot make another kind of an object.
fn check_patched_kind(on: On<'_>, value: &Value) -> Result<(), String> {
    let text = |field: &str| value.get(field).and_then(Value::as_str).filter(|text| !text.is_empty());
    let wanted = on.wanted_gv();
    let kind = text("kind").unwrap_or(on.wanted_kind());
    let version = text("apiVersion").map_or_else(|| wanted.to_string(), str::to_owned);
    let gv = GroupVersion::parse(&version).unwrap_or_else(|| GroupVersion::new("", &version));
    if on.resource.custom.is_some() || (kind == on.wanted_kind() && gv == wanted) {
        return Ok(());
    }
    match is_registered(on, &gv, kind) {
        // Another version of the same kind can be converted.
        true if kind == on.wanted_kind() && gv.group == wanted.group => Ok(()),
        true => Err(unknown_conversion(&gv.version, kind, &wanted, on.wanted_kind())),
        false => Err(not_registered(on, kind, &version)),
    }
}

/// The order in which Go writes metadata, and an entry of its `managedFields`.
const META: [&str; 15] = [
    "name",
    "generateName",
    "namespace",
    "selfLink",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
    "managedFields",
];
const MANAGED: [&str; 7] = ["manager", "operation", "apiVersion", "time", "fieldsType", "fieldsV1", "subresource"];

/// A patched object as kube-apiserver shows it in a refusal: what the patch did not touch is in the order of Go's types.
fn shown_object(value: &Value) -> String {
    let Some(members) = value.as_object() else { return value.to_string() };
    let members: Vec<String> = members
        .iter()
        .map(|(key, value)| {
            let text = if key == "metadata" { in_order(value, &META) } else { value.to_string() };
            format!("{}:{text}", Value::from(key.as_str()))
        })
        .collect();
    format!("{{{}}}", members.join(","))
}

fn in_order(value: &Value, order: &[&str]) -> String {
    let Some(members) = value.as_object() else { return value.to_string() };
    let known = order.iter().filter_map(|name| members.get_key_value(*name));
    let others = members.iter().filter(|(name, _)| !order.contains(&name.as_str()));
    let members: Vec<String> = known
        .chain(others)
        .map(|(name, value)| match (name.as_str(), value) {
            ("managedFields", Value::Array(entries)) => {
                let entries: Vec<String> = entries.iter().map(|entry| in_order(entry, &MANAGED)).collect();
                format!("\"managedFields\":[{}]", entries.join(","))
            }
            _ => format!("{}:{value}", Value::from(name.as_str())),
        })
        .collect();
    format!("{{{}}}", members.join(","))
}
