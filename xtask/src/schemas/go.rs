//! What the Go sources of the types say, and OpenAPI does not: which fields are pointers, and which are left out when empty.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use anyhow::Context;
use serde_json::Value;

use super::{
    Marks, Type,
    line::{self, text},
};

/// A struct's fields by their names in JSON, and the names of the structs that are embedded in it.
#[derive(Default)]
struct Struct {
    fields: BTreeMap<String, Field>,
    embedded: Vec<String>,
}

#[derive(Clone, Copy)]
struct Field {
    pointer: bool,
    omit_empty: bool,
    omit_zero: bool,
}

type Structs = BTreeMap<String, Struct>;

/// The package of `TypeMeta`, `ListMeta` and the like, which other packages embed.
const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";

/// Reads the packages of these types, and marks their fields.
pub(super) fn marks(sources: &Path, types: &BTreeMap<String, Type>) -> anyhow::Result<Marks> {
    let names: BTreeSet<&str> = types.keys().filter_map(|name| Some(name.rsplit_once('.')?.0)).collect();
    let mut packages = BTreeMap::new();
    for name in names {
        packages.insert(name, package(sources, name)?);
    }
    let mut marks = Marks::new();
    for (full, of) in types {
        let Some((package, name)) = full.rsplit_once('.') else { continue };
        for (field, schema) in of.schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
            if let Some(found) = find(&packages, package, name, field) {
                marks.insert((full.clone(), field.clone()), mark(schema, found).to_owned());
            }
        }
    }
    Ok(marks)
}

/// A field of a struct, its own or of what is embedded in it.
fn find(packages: &BTreeMap<&str, Structs>, package: &str, name: &str, field: &str) -> Option<Field> {
    let of = packages.get(package)?.get(name)?;
    let own = of.fields.get(field).copied();
    own.or_else(|| {
        of.embedded.iter().find_map(|embedded| match embedded.rsplit_once('.') {
            Some((_, name)) => find(packages, META, name, field),
            None => find(packages, package, embedded, field),
        })
    })
}

/// Go leaves out empty scalars, lists and maps with `omitempty`, and structs only with `omitzero`.
fn mark(schema: &Value, field: Field) -> &'static str {
    let many = schema.get("items").or_else(|| schema.get("additionalProperties")).is_some();
    let slice = many || text(schema, "format") == "byte";
    let plain = line::reference(schema).is_none();
    match field {
        Field { pointer: true, omit_empty: true, .. } => "",
        Field { pointer: true, .. } => "null",
        Field { omit_zero: true, .. } => "omit",
        Field { omit_empty: true, .. } if plain => "omit",
        _ if slice => "null",
        _ => "zero",
    }
}

/// The structs of a package. `io.k8s.api.core.v1` is in `api/core/v1`.
fn package(sources: &Path, name: &str) -> anyhow::Result<Structs> {
    let path = name.trim_start_matches("io.k8s.").replace('.', "/");
    let directory = sources.join(path);
    let mut structs = Structs::new();
    for entry in fs::read_dir(&directory).with_context(|| format!("cannot list {}", directory.display()))? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.ends_with(".go") && !name.ends_with("_test.go") && !name.contains("generated") {
            let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
            read(&text, &mut structs);
        }
    }
    Ok(structs)
}

/// The structs of a file. gofmt's layout is assumed: a field to a line, the closing brace at the margin.
fn read(text: &str, structs: &mut Structs) {
    let mut inside: Option<&mut Struct> = None;
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

fn read_field(line: &str, of: &mut Struct) {
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
    let (omit_empty, omit_zero) = (options.contains(&"omitempty"), options.contains(&"omitzero"));
    of.fields.insert(name.to_owned(), Field { pointer, omit_empty, omit_zero });
}
