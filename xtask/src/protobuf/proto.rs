//! Reads `generated.proto` as go-to-protobuf writes it: one field per line, no nested messages.

use anyhow::{Context as _, bail};

pub(super) struct ProtoMessage {
    /// In short form: `core/v1`.
    pub(super) package: String,
    pub(super) name: String,
    pub(super) fields: Vec<ProtoField>,
}

pub(super) struct ProtoField {
    pub(super) number: u32,
    pub(super) name: String,
    /// A scalar, or a message with its package: `core/v1.Container`.
    pub(super) kind: String,
    pub(super) label: ProtoLabel,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ProtoLabel {
    One,
    Repeated,
    Map,
}

pub(super) fn parse_messages(text: &str) -> anyhow::Result<Vec<ProtoMessage>> {
    let mut messages: Vec<ProtoMessage> = Vec::new();
    let mut package = "";
    for line in text.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix("package ") {
            package = name.trim_end_matches(';');
        } else if let Some(name) = line.strip_prefix("message ") {
            let name = name.trim_end_matches(['{', '}', ' ']).to_owned();
            messages.push(ProtoMessage { package: short(package), name, fields: Vec::new() });
        } else if let (Some(message), Some(field)) = (messages.last_mut(), parse_field(line, package)) {
            message.fields.push(field.with_context(|| format!("in {line:?}"))?);
        }
    }
    for message in &mut messages {
        message.fields.sort_by_key(|field| field.number);
    }
    Ok(messages)
}

fn parse_field(line: &str, package: &str) -> Option<anyhow::Result<ProtoField>> {
    let (label, rest) = if let Some(rest) = line.strip_prefix("map<string, ") {
        (ProtoLabel::Map, rest)
    } else if let Some(rest) = line.strip_prefix("repeated ") {
        (ProtoLabel::Repeated, rest)
    } else {
        (ProtoLabel::One, line.strip_prefix("optional ")?)
    };
    Some(parse_declaration(rest, label, package))
}

fn parse_declaration(rest: &str, label: ProtoLabel, package: &str) -> anyhow::Result<ProtoField> {
    let words: Vec<&str> = rest.split(' ').collect();
    let [kind, name, "=", number] = words.as_slice() else { bail!("a field of another form") };
    let number = number.trim_end_matches(';').parse().context("the number")?;
    Ok(ProtoField { number, name: (*name).to_owned(), kind: resolve(kind.trim_end_matches('>'), package), label })
}

fn resolve(kind: &str, package: &str) -> String {
    if matches!(kind, "string" | "bool" | "int32" | "int64" | "double" | "bytes") {
        return kind.to_owned();
    }
    match kind.strip_prefix('.').and_then(|full| full.rsplit_once('.')) {
        Some((package, name)) => format!("{}.{name}", short(package)),
        None => format!("{}.{kind}", short(package)),
    }
}

/// `k8s.io.api.core.v1` becomes `core/v1`; a package without a version becomes its last component.
fn short(package: &str) -> String {
    match package.rsplit_once('.') {
        Some((before, version)) if version.starts_with('v') => {
            format!("{}/{version}", before.rsplit('.').next().unwrap_or_default())
        }
        Some((_, last)) => last.to_owned(),
        None => package.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_with_their_types() {
        let text = "package k8s.io.api.core.v1;\n// No field.\nmessage Thing {\n  // optional string note = 9;\n  \
                    map<string, .k8s.io.apimachinery.pkg.api.resource.Quantity> limits = 2;\n\n  repeated Other others = 1;\n}\n";
        let messages = parse_messages(text).unwrap();
        assert_eq!((messages.len(), messages[0].package.as_str()), (1, "core/v1"));
        let fields: Vec<_> = messages[0].fields.iter().map(|f| (f.number, f.name.as_str(), f.kind.as_str())).collect();
        assert_eq!(fields, [(1, "others", "core/v1.Other"), (2, "limits", "resource.Quantity")]);
    }
}
