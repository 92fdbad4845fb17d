//! Facts in the Go sources of the types that OpenAPI lacks: which fields are pointers, and which are omitted
//! when empty.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use anyhow::Context;
use serde_json::Value;

use super::{
    FieldMarks, OpenApiType,
    table_line::{self, text_member},
};

/// A struct's fields by their JSON names, and the names of its embedded structs.
#[derive(Default)]
struct GoStruct {
    fields: BTreeMap<String, GoStructField>,
    embedded: Vec<String>,
}

#[derive(Clone, Copy)]
struct GoStructField {
    pointer: bool,
    omit_empty: bool,
    omit_zero: bool,
}

type GoStructs = BTreeMap<String, GoStruct>;

/// The package of `TypeMeta`, `ListMeta` and others, which other packages embed.
const META_PACKAGE: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";

/// Reads the packages of these types, and returns the marks of their fields.
pub(super) fn read_marks(sources: &Path, types: &BTreeMap<String, OpenApiType>) -> anyhow::Result<FieldMarks> {
    let names: BTreeSet<&str> = types.keys().filter_map(|name| Some(name.rsplit_once('.')?.0)).collect();
    let mut packages = BTreeMap::new();
    for name in names {
        packages.insert(name, read_package(sources, name)?);
    }
    let mut marks = FieldMarks::new();
    for (full, of) in types {
        let Some((package, name)) = full.rsplit_once('.') else { continue };
        for (field, schema) in of.schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
            if let Some(found) = find_field(&packages, package, name, field) {
                marks.insert((full.clone(), field.clone()), omission_mark(schema, found).to_owned());
            }
        }
    }
    Ok(marks)
}

/// Finds a field of a struct or of its embedded structs.
fn find_field(packages: &BTreeMap<&str, GoStructs>, package: &str, name: &str, field: &str) -> Option<GoStructField> {
    let of = packages.get(package)?.get(name)?;
    let own = of.fields.get(field).copied();
    own.or_else(|| {
        of.embedded.iter().find_map(|embedded| match embedded.rsplit_once('.') {
            Some((_, name)) => find_field(packages, META_PACKAGE, name, field),
            None => find_field(packages, package, embedded, field),
        })
    })
}

/// Go omits empty scalars, lists and maps with `omitempty`, and structs only with `omitzero`.
fn omission_mark(schema: &Value, field: GoStructField) -> &'static str {
    let many = schema.get("items").or_else(|| schema.get("additionalProperties")).is_some();
    let slice = many || text_member(schema, "format") == "byte";
    let plain = table_line::reference(schema).is_none();
    match field {
        GoStructField { pointer: true, omit_empty: true, .. } => "",
        GoStructField { pointer: true, .. } => "null",
        GoStructField { omit_zero: true, .. } => "omit",
        GoStructField { omit_empty: true, .. } if plain => "omit",
        _ if slice => "null",
        _ => "zero",
    }
}

/// The structs of a package. `io.k8s.api.core.v1` is in `api/core/v1`.
fn read_package(sources: &Path, name: &str) -> anyhow::Result<GoStructs> {
    let path = name.trim_start_matches("io.k8s.").replace('.', "/");
    let directory = sources.join(path);
    let mut structs = GoStructs::new();
    for entry in fs::read_dir(&directory).with_context(|| format!("failed to list {}", directory.display()))? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.ends_with(".go") && !name.ends_with("_test.go") && !name.contains("generated") {
            let text = fs::read_to_string(&path).with_context(|| format!("failed to read {}", path.display()))?;
            parse_structs(&text, &mut structs);
        }
    }
    Ok(structs)
}

/// The structs in a file in gofmt's layout: one field per line, the closing brace at the margin.
fn parse_structs(text: &str, structs: &mut GoStructs) {
    let mut inside: Option<&mut GoStruct> = None;
    for line in text.lines() {
        let start = line.strip_prefix("type ").and_then(|rest| rest.strip_suffix(" struct {"));
        if let Some(name) = start {
            inside = Some(structs.entry(name.to_owned()).or_default());
        } else if line == "}" {
            inside = None;
        } else if let Some(of) = &mut inside {
            read_field(line, of);
        }
    }
}

fn read_field(line: &str, of: &mut GoStruct) {
    let line = line.trim();
    let Some((declared, tags)) = line.split_once('`').filter(|_| !line.starts_with("//")) else { return };
    let Some(tag) = tags.split_once("json:\"").and_then(|(_, rest)| rest.split('"').next()) else { return };
    let mut options = tag.split(',');
    let name = options.next().unwrap_or_default();
    let options: Vec<&str> = options.collect();
    let mut words = declared.split_whitespace();
    if name.is_empty() {
        of.embedded.extend(words.next_back().map(str::to_owned));
        return;
    }
    let pointer = words.next_back().is_some_and(|of| of.starts_with('*'));
    let omit_empty = options.contains(&"omitempty");
    let omit_zero = options.contains(&"omitzero");
    of.fields.insert(name.to_owned(), GoStructField { pointer, omit_empty, omit_zero });
}
