//! Label selectors in kubectl's syntax: `app=shop,tier in (web, api),!legacy`.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};

/// A text that is not a valid selector.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{part:?} is not a requirement of a label selector: use KEY=VALUE, KEY!=VALUE, KEY in (A, B), KEY notin (A, B), KEY, or !KEY"
)]
pub struct InvalidSelector {
    part: String,
}

/// Parses a selector. An empty text selects everything.
pub fn parse(text: &str) -> Result<LabelSelector, InvalidSelector> {
    if text.trim().is_empty() {
        return Ok(LabelSelector::default());
    }
    let requirements = split_requirements(text).into_iter().map(parse_requirement).collect::<Result<Vec<_>, _>>()?;
    Ok(LabelSelector { match_expressions: Some(requirements), match_labels: None })
}

/// Splits a text at the commas outside of parentheses.
fn split_requirements(text: &str) -> Vec<&str> {
    let mut depth = 0_i32;
    let at_comma = |c: char| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        c == ',' && depth == 0
    };
    text.split(at_comma).map(str::trim).collect()
}

fn parse_requirement(part: &str) -> Result<LabelSelectorRequirement, InvalidSelector> {
    let bad = || InvalidSelector { part: part.to_owned() };
    let (key, operator, values) = match part {
        _ if part.starts_with('!') => (part.strip_prefix('!').unwrap_or_default(), "DoesNotExist", None),
        _ if part.ends_with(')') => {
            let (head, list) = part.strip_suffix(')').and_then(|part| part.split_once('(')).ok_or_else(bad)?;
            if list.trim().is_empty() {
                return Err(bad());
            }
            let (key, word) = head.trim().rsplit_once(' ').ok_or_else(bad)?;
            let operator = match word {
                "in" => "In",
                "notin" => "NotIn",
                _ => return Err(bad()),
            };
            (key, operator, Some(list.split(',').map(|value| value.trim().to_owned()).collect()))
        }
        _ if part.contains("!=") => parse_equality(part, "!=", "NotIn").ok_or_else(bad)?,
        _ if part.contains("==") => parse_equality(part, "==", "In").ok_or_else(bad)?,
        _ if part.contains('=') => parse_equality(part, "=", "In").ok_or_else(bad)?,
        _ => (part, "Exists", None),
    };
    let key = key.trim();
    let good = is_key(key) && values.iter().flatten().all(|value: &String| value.is_empty() || is_label_value(value));
    let requirement = LabelSelectorRequirement { key: key.to_owned(), operator: operator.to_owned(), values };
    good.then_some(requirement).ok_or_else(bad)
}

/// Whether a text is a valid label key: a name, possibly with a domain prefix.
fn is_key(key: &str) -> bool {
    let (domain, name) = key.split_once('/').map_or((None, key), |(domain, name)| (Some(domain), name));
    let lower = |label: &str| label.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
    let is_domain =
        |domain: &str| domain.len() <= 253 && domain.split('.').all(|label| is_label_value(label) && lower(label));
    is_label_value(name) && domain.is_none_or(is_domain)
}

/// Whether a text is a valid label value.
fn is_label_value(text: &str) -> bool {
    let inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let edge = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    text.len() <= 63 && text.chars().all(inner) && edge(text.chars().next()) && edge(text.chars().next_back())
}

fn parse_equality<'a>(
    part: &'a str,
    sign: &str,
    operator: &'static str,
) -> Option<(&'a str, &'static str, Option<Vec<String>>)> {
    let (key, value) = part.split_once(sign)?;
    Some((key, operator, Some(vec![value.trim().to_owned()])))
}
