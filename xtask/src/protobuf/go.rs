//! Reads the field tags of Go structs, in gofmt's layout.

use std::{collections::BTreeMap, fs, path::Path};

pub(super) enum GoType {
    /// Fields by their protobuf number.
    Struct(BTreeMap<u32, GoField>),
    /// A named list of strings.
    List,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct GoField {
    pub(super) name: String,
    pub(super) pointer: bool,
    pub(super) inline: bool,
    pub(super) omits_empty: bool,
    pub(super) omits_zero: bool,
}

pub(super) fn read_package(dir: &Path) -> anyhow::Result<BTreeMap<String, GoType>> {
    let mut types = BTreeMap::new();
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let generated = name.starts_with("generated") || name.starts_with("zz_") || name.ends_with("_test.go");
        if name.ends_with(".go") && !generated {
            parse(&fs::read_to_string(&path)?, &mut types);
        }
    }
    Ok(types)
}

fn parse(text: &str, types: &mut BTreeMap<String, GoType>) {
    let mut current = None;
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("type ").and_then(|rest| rest.strip_suffix(" struct {")) {
            types.insert(name.to_owned(), GoType::Struct(BTreeMap::new()));
            current = Some(name);
        } else if let Some(name) = line.strip_prefix("type ").and_then(|rest| rest.strip_suffix(" []string")) {
            types.insert(name.to_owned(), GoType::List);
        } else if line == "}" {
            current = None;
        } else if let Some(name) = current
            && let Some(GoType::Struct(fields)) = types.get_mut(name)
        {
            fields.extend(parse_field(line));
        }
    }
}

/// Parses `Name *Type `json:"name,omitempty" protobuf:"bytes,1,opt,name=name"``.
fn parse_field(line: &str) -> Option<(u32, GoField)> {
    let (declared, tags) = line.split_once('`')?;
    let number = find_tag(tags, "protobuf")?.split(',').nth(1)?.parse().ok()?;
    let mut json = find_tag(tags, "json")?.split(',');
    let name = json.next()?.to_owned();
    let options: Vec<&str> = json.collect();
    let go_type = declared.split_whitespace().nth(1).unwrap_or_default();
    let field = GoField {
        inline: options.contains(&"inline"),
        omits_empty: options.contains(&"omitempty"),
        omits_zero: options.contains(&"omitzero"),
        pointer: go_type.starts_with('*'),
        name,
    };
    Some((number, field))
}

fn find_tag<'t>(tags: &'t str, name: &str) -> Option<&'t str> {
    let (_, rest) = tags.split_once(&format!("{name}:\""))?;
    rest.split('"').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_read() {
        let line = "\tReplicas *int32 `json:\"replicas,omitempty\" protobuf:\"varint,1,opt,name=replicas\"`";
        let replicas = GoField { name: "replicas".into(), pointer: true, omits_empty: true, ..GoField::default() };
        assert_eq!(parse_field(line), Some((1, replicas)));
        let line = "\tVolumeSource `json:\",inline\" protobuf:\"bytes,2,opt,name=volumeSource\"`";
        assert_eq!(parse_field(line), Some((2, GoField { inline: true, ..GoField::default() })));
        assert_eq!(parse_field("\tTypeMeta `json:\",inline\"`"), None);
    }
}
