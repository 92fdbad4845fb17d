//! Selectors as kubectl writes them: `app=shop,tier in (web, api),!legacy`.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};

/// Why a text is no selector.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{part:?} is no requirement on labels: KEY=VALUE, KEY!=VALUE, KEY in (A, B), KEY notin (A, B), KEY, or !KEY")]
pub struct BadSelector {
    part: String,
}

/// Reads a selector. An empty text selects everything.
pub fn parse(text: &str) -> Result<LabelSelector, BadSelector> {
    let requirements = split(text).into_iter().map(requirement).collect::<Result<Vec<_>, _>>()?;
    Ok(LabelSelector { match_expressions: (!requirements.is_empty()).then_some(requirements), match_labels: None })
}

/// The parts between commas that are not in parentheses.
fn split(text: &str) -> Vec<&str> {
    let mut depth = 0_i32;
    let at_comma = |c: char| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        c == ',' && depth == 0
    };
    text.split(at_comma).map(str::trim).filter(|part| !part.is_empty()).collect()
}

fn requirement(part: &str) -> Result<LabelSelectorRequirement, BadSelector> {
    let bad = || BadSelector { part: part.to_owned() };
    let (key, operator, values) = match part {
        _ if part.starts_with('!') => (part.trim_start_matches('!'), "DoesNotExist", None),
        _ if part.ends_with(')') => {
            let (head, list) = part.trim_end_matches(')').split_once('(').ok_or_else(bad)?;
            let (key, word) = head.trim().rsplit_once(' ').ok_or_else(bad)?;
            let operator = match word {
                "in" => "In",
                "notin" => "NotIn",
                _ => return Err(bad()),
            };
            (key, operator, Some(list.split(',').map(|value| value.trim().to_owned()).collect()))
        }
        _ if part.contains("!=") => pair(part, "!=", "NotIn").ok_or_else(bad)?,
        _ if part.contains("==") => pair(part, "==", "In").ok_or_else(bad)?,
        _ if part.contains('=') => pair(part, "=", "In").ok_or_else(bad)?,
        _ => (part, "Exists", None),
    };
    let key = key.trim();
    let is_label = |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/'));
    let good = !key.is_empty() && is_label(key) && values.iter().flatten().all(|value: &String| is_label(value));
    let requirement = LabelSelectorRequirement { key: key.to_owned(), operator: operator.to_owned(), values };
    good.then_some(requirement).ok_or_else(bad)
}

fn pair<'a>(part: &'a str, sign: &str, operator: &'static str) -> Option<(&'a str, &'static str, Option<Vec<String>>)> {
    let (key, value) = part.split_once(sign)?;
    Some((key, operator, Some(vec![value.trim().to_owned()])))
}
