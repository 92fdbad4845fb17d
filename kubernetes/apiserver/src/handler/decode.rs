//! Decodes the body of a request into an object of its resource.

use std::sync::Arc;

use serde_json::Value;

use super::call::ResourceRequest;
use crate::{
    api::{GroupKind, GroupVersion, StatusError, field, go_format, meta::set_meta},
    codec::{
        MediaType, body,
        content_type::{self, PatchType},
        json,
        query::{FieldValidation, WriteOptions},
        yaml,
    },
    crd::versions,
    registry::ServedResource,
    schema::{Schema, decode, defaults, prune},
};

/// The object in the body of a create or an update.
pub fn object(on: ResourceRequest<'_>, bytes: &[u8], options: &WriteOptions) -> Result<Value, StatusError> {
    let media = content_type::object(on.content_type())?;
    decode_object_as(on, media, bytes, options)
}

/// The configuration in the body of an apply.
#[derive(Debug)]
pub struct ApplyConfiguration {
    /// The configuration as it was sent: present fields matter, so nothing is defaulted or dropped here. Its
    /// types and its kind are checked where it is merged.
    pub value: Value,
    /// Duplicate keys, as one message.
    duplicates: Option<String>,
}

impl ApplyConfiguration {
    /// Applies strict field validation to duplicate keys. kube-apiserver does so after the merge.
    pub fn check_duplicates(&self, on: ResourceRequest<'_>, options: &WriteOptions) -> Result<(), StatusError> {
        let Some(problem) = &self.duplicates else { return Ok(()) };
        match options.field_validation {
            FieldValidation::Strict => {
                let why = format!("error strict decoding patch: error converting YAML to JSON: {problem}");
                return Err(StatusError::bad_request(why));
            }
            FieldValidation::Warn => {
                body::warnings(std::slice::from_ref(problem)).for_each(|warning| on.call.warnings.add(warning));
            }
            FieldValidation::Ignore => {}
        }
        Ok(())
    }
}

/// Decodes the configuration of an apply, which is YAML and therefore may be JSON.
pub fn decode_apply_configuration(bytes: &[u8]) -> Result<ApplyConfiguration, StatusError> {
    let decoded =
        yaml::decode(bytes).map_err(|error| undecodable(&format!("error converting YAML to JSON: {error}")))?;
    let duplicates = yaml::strict_error(&decoded.duplicates);
    let value = match decoded.value {
        value @ Value::Object(_) => value,
        Value::Null => Value::Object(serde_json::Map::new()),
        other => {
            let found = go_format::json_kind(&other);
            let why = format!("json: cannot unmarshal {found} into Go value of type map[string]interface {{}}");
            return Err(undecodable(&format!("error unmarshaling JSON: while decoding JSON: {why}")));
        }
    };
    Ok(ApplyConfiguration { value, duplicates })
}

fn undecodable(why: &str) -> StatusError {
    StatusError::bad_request(format!("error decoding patch: {why}"))
}

fn decode_object_as(
    on: ResourceRequest<'_>,
    media: MediaType,
    bytes: &[u8],
    options: &WriteOptions,
) -> Result<Value, StatusError> {
    let mut decoded = body::decode(media, bytes, &on.body_group_version(), on.body_kind())?;
    let mut value = decoded.value.take();
    if value.is_null() {
        value = Value::Object(serde_json::Map::new());
    }
    let found = BodyTypeMeta::new(on, &value, bytes)?;
    let reset = resets_managers(&value);
    let refuse = |why: &str| body::cannot_be_handled_status(&found.kind, &found.gv().version, on.body_kind(), why);
    let unknown = found.decode_typed(on, &mut value).map_err(|why| refuse(&why))?;
    let problems = decoded.strict_problems(bytes, &unknown);
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
    on.convert_to_stored(&mut value);
    Ok(value)
}

/// The `apiVersion` and `kind` of a body.
struct BodyTypeMeta {
    kind: String,
    api_version: String,
}

impl BodyTypeMeta {
    /// A body of a built-in kind without a kind has that of the path; another kind is refused. Custom resources
    /// must state it; it is compared later.
    fn new(on: ResourceRequest<'_>, value: &Value, bytes: &[u8]) -> Result<Self, StatusError> {
        let text = |field: &str| value.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
        let kind = text("kind");
        let api_version = text("apiVersion");
        if is_custom(on) {
            if kind.is_empty() {
                let why = format!("Object 'Kind' is missing in '{}'", String::from_utf8_lossy(bytes));
                return Err(body::unrecognized_status(on.body_kind(), &why, bytes));
            }
            return Ok(Self { kind, api_version });
        }
        let or = |given: String, wanted: String| if given.is_empty() { wanted } else { given };
        let found = Self {
            kind: or(kind, on.body_kind().into()),
            api_version: or(api_version, on.body_group_version().to_string()),
        };
        found.check_kind(on)?;
        Ok(found)
    }

    fn gv(&self) -> GroupVersion {
        GroupVersion::parse(&self.api_version).unwrap_or_else(|| GroupVersion::new("", &self.api_version))
    }

    /// Checks types, drops unknown fields and sets the schema's defaults. Returns the paths of the dropped
    /// fields.
    fn decode_typed(&self, on: ResourceRequest<'_>, value: &mut Value) -> Result<Vec<String>, String> {
        if is_custom(on) {
            return prune_custom_resource(value, versions::body_schema(on.resource, &self.kind, &self.gv()));
        }
        decode::check_types(value, on.body_schema()).map_err(|error| error.to_string())
    }

    /// Whether the body can be decoded as the path's kind. Two known kinds without a conversion between them
    /// have an error of their own.
    fn check_kind(&self, on: ResourceRequest<'_>) -> Result<(), StatusError> {
        let gv = self.gv();
        let wanted_gv = on.body_group_version();
        if self.kind == on.body_kind() && gv == wanted_gv {
            return Ok(());
        }
        let catalog = &on.call.catalog;
        let same = |found: &Arc<ServedResource>| found.group_kind() == on.served_resource().group_kind();
        if on.path.subresource.is_empty() && catalog.find_by_kind(&gv, &self.kind).is_some_and(same) {
            // It is another shape of the same kind: only its version is wrong.
            return self.check_version(on);
        }
        let why = if is_registered(on, &gv, &self.kind) {
            unknown_conversion(&gv.version, &self.kind, &wanted_gv, on.body_kind())
        } else {
            not_registered(on, &self.kind, &self.api_version)
        };
        Err(body::cannot_be_handled_status(&self.kind, &gv.version, on.body_kind(), &why))
    }

    fn check_version(&self, on: ResourceRequest<'_>) -> Result<(), StatusError> {
        let wanted = on.body_group_version().to_string();
        if self.api_version == wanted {
            return Ok(());
        }
        let found = &self.api_version;
        let message =
            format!("the API version in the data ({found}) does not match the expected API version ({wanted})");
        Err(StatusError::bad_request(message))
    }
}

fn not_registered(on: ResourceRequest<'_>, kind: &str, version: &str) -> String {
    let kind = go_format::quote(kind);
    let version = go_format::quote(version);
    format!("no kind {kind} is registered for version {version} in scheme {:?}", scheme(on))
}

fn is_custom(on: ResourceRequest<'_>) -> bool {
    on.resource.custom.is_some() && !on.is_scale()
}

/// Whether kube-apiserver has a type for a kind at this path. CustomResourceDefinitions have a server of their
/// own, which knows no other kinds.
fn is_registered(on: ResourceRequest<'_>, gv: &GroupVersion, kind: &str) -> bool {
    let mut known = on.call.catalog.resources_of_version(gv).filter(|resource| resource.custom.is_none()).peekable();
    if known.peek().is_none() || (is_definition(on) && gv.group != on.resource.gv.group) {
        return false;
    }
    KINDS_IN_EVERY_VERSION.contains(&kind)
        || (kind == "List" && gv.group.is_empty())
        || known.any(|resource| {
            let parts = resource.subresources.iter().filter(|part| part.gv.is_none());
            &*resource.kind == kind || &*resource.list_kind == kind || parts.into_iter().any(|part| &*part.kind == kind)
        })
}

/// Kinds that are registered in every version of every group.
const KINDS_IN_EVERY_VERSION: [&str; 8] = [
    "CreateOptions",
    "DeleteOptions",
    "GetOptions",
    "ListOptions",
    "PatchOptions",
    "Status",
    "UpdateOptions",
    "WatchEvent",
];

fn is_definition(on: ResourceRequest<'_>) -> bool {
    &*on.resource.gv.group == "apiextensions.k8s.io"
}

/// The Go package of kube-apiserver's scheme, as its messages name it.
fn scheme(on: ResourceRequest<'_>) -> &'static str {
    if is_definition(on) {
        "k8s.io/apiextensions-apiserver/pkg/apiserver/apiserver.go:56"
    } else {
        "pkg/api/legacyscheme/scheme.go:30"
    }
}

/// kube-apiserver's message about a missing conversion between kinds, by the names of their Go types.
fn unknown_conversion(version: &str, kind: &str, wanted_gv: &GroupVersion, wanted: &str) -> String {
    let package = match wanted_gv.group.split('.').next().unwrap_or_default() {
        "" | "events" => "core",
        group => group,
    };
    format!("converting ({version}.{kind}) to ({package}.{wanted}): unknown conversion")
}

/// Decodes the result of a patch like a body that was sent.
pub fn decode_patched(
    on: ResourceRequest<'_>,
    value: &mut Value,
    patch: &[u8],
    form: PatchType,
    options: &WriteOptions,
) -> Result<(), StatusError> {
    let before = format_go_object(value);
    let invalid = |shown: &str, why: &str| {
        let error = field::FieldError::invalid("patch", &shown.into(), why);
        StatusError::invalid(&GroupKind::new("", ""), "", &[error])
    };
    match form {
        // Only fields are merged: `apiVersion` and `kind` of the patch are ignored.
        PatchType::StrategicMerge => set_kind(on, value),
        _ => check_patched_kind(on, value).map_err(|why| invalid(&before, &why))?,
    }
    let unknown = decode_typed(on, value).map_err(|why| invalid(&before, &why))?;
    let mut problems = patch_problems(patch, form);
    problems.extend(unknown.iter().map(|path| body::unknown_field(path)));
    match options.field_validation {
        FieldValidation::Strict if !problems.is_empty() => {
            let shown = match form {
                PatchType::StrategicMerge => format_go_map(patch),
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

/// What strict decoding reports about a patch itself: duplicate keys, and fields that an operation does not
/// have.
fn patch_problems(patch: &[u8], form: PatchType) -> Vec<String> {
    // An apply has reported already; a patch that cannot be decoded was refused.
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

fn set_kind(on: ResourceRequest<'_>, value: &mut Value) {
    if let Some(object) = value.as_object_mut().filter(|_| !is_custom(on)) {
        object.insert("kind".into(), on.body_kind().into());
        object.insert("apiVersion".into(), on.body_group_version().to_string().into());
    }
}

/// Checks types, drops unknown fields and sets the schema's defaults. Returns the paths of the dropped fields.
fn decode_typed(on: ResourceRequest<'_>, value: &mut Value) -> Result<Vec<String>, String> {
    let schema = on.body_schema();
    if is_custom(on) {
        prune_custom_resource(value, schema)
    } else {
        decode::check_types(value, schema).map_err(|error| error.to_string())
    }
}

/// The same for a custom resource, whose types are checked by validation.
fn prune_custom_resource(value: &mut Value, schema: &Schema) -> Result<Vec<String>, String> {
    let dropped = prune::prune(value, schema).map_err(|error| error.to_string())?;
    defaults::apply_defaults(value, schema);
    Ok(dropped)
}

/// A patch in the format in which Go prints a map.
fn format_go_map(patch: &[u8]) -> String {
    serde_json::from_slice(patch).map_or_else(|_| String::new(), |patch| go_format::printed(&patch))
}

/// Whether the writer resets `managedFields`: by an empty list, or a list of one empty entry. After decoding
/// both look like an absent list.
fn resets_managers(object: &Value) -> Option<Value> {
    let entries = object.pointer("/metadata/managedFields")?;
    let reset = match entries.as_array()?.as_slice() {
        [] => true,
        [one] => one.as_object().is_some_and(serde_json::Map::is_empty),
        _ => false,
    };
    reset.then(|| entries.clone())
}

/// A patch cannot change the kind of an object.
fn check_patched_kind(on: ResourceRequest<'_>, value: &Value) -> Result<(), String> {
    let text = |field: &str| value.get(field).and_then(Value::as_str).filter(|text| !text.is_empty());
    let wanted = on.body_group_version();
    let kind = text("kind").unwrap_or(on.body_kind());
    let version = text("apiVersion").map_or_else(|| wanted.to_string(), str::to_owned);
    let gv = GroupVersion::parse(&version).unwrap_or_else(|| GroupVersion::new("", &version));
    if on.resource.custom.is_some() || (kind == on.body_kind() && gv == wanted) {
        return Ok(());
    }
    match is_registered(on, &gv, kind) {
        // Another version of the same kind can be converted.
        true if kind == on.body_kind() && gv.group == wanted.group => Ok(()),
        true => Err(unknown_conversion(&gv.version, kind, &wanted, on.body_kind())),
        false => Err(not_registered(on, kind, &version)),
    }
}

/// The order in which Go writes metadata, and an entry of `managedFields`.
const OBJECT_META_FIELD_ORDER: [&str; 15] = [
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
const MANAGED_FIELDS_ENTRY_ORDER: [&str; 7] =
    ["manager", "operation", "apiVersion", "time", "fieldsType", "fieldsV1", "subresource"];

/// A patched object as kube-apiserver shows it in a refusal: fields that the patch did not touch are in the
/// order of Go's types.
fn format_go_object(value: &Value) -> String {
    let Some(members) = value.as_object() else { return value.to_string() };
    let members: Vec<String> = members
        .iter()
        .map(|(key, value)| {
            let text = if key == "metadata" { in_order(value, &OBJECT_META_FIELD_ORDER) } else { value.to_string() };
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
                let entries: Vec<String> =
                    entries.iter().map(|entry| in_order(entry, &MANAGED_FIELDS_ENTRY_ORDER)).collect();
                format!("\"managedFields\":[{}]", entries.join(","))
            }
            _ => format!("{}:{value}", Value::from(name.as_str())),
        })
        .collect();
    format!("{{{}}}", members.join(","))
}
