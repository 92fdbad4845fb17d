//! How records pass from operator to operator.

use std::collections::{HashMap, HashSet};

use super::{
    OperatorConfig, OperatorGraph, OperatorKind,
    decode::{self, DecodedOperator, OutputReference},
};
use crate::{
    decode::{Cursor, DecodeReport, scalar},
    encode::WrittenSection,
};

/// The most operators in one list.
const MAX_OPERATORS: usize = 500;
/// The most ways of a record through the operators: each but the first is a copy of it.
const MAX_PATHS: usize = 100;

/// Reads a list of operators.
pub(in crate::receiver::file_log) fn graph(at: &Cursor<'_>, report: &DecodeReport) -> Option<OperatorGraph> {
    let Some(items) = at.items() else {
        return scalar::wrong_type(at, report, "a list of operators", None);
    };
    let read: Vec<Option<DecodedOperator<'_>>> = items.map(|item| decode::operator(&item, report)).collect();
    if read.len() > MAX_OPERATORS {
        report.error(at, format!("`{}` must have at most {MAX_OPERATORS} operators", at.name()), None);
        return None;
    }
    let errors = report.errors();
    let decoded: Vec<DecodedOperator<'_>> = read.into_iter().collect::<Option<_>>()?;
    let ids = unique_ids(&decoded, report);
    let graph = OperatorGraph { operators: connected(decoded, &ids, report)?, written: WrittenSection::new(at) };
    if report.errors() == errors {
        check_paths(at, &graph, report);
    }
    Some(graph)
}

/// The ids of all operators: what is set, or the type, with a number if that is taken.
fn unique_ids(decoded: &[DecodedOperator<'_>], report: &DecodeReport) -> Vec<String> {
    let mut taken: HashSet<String> = HashSet::new();
    for (id, at) in decoded.iter().filter_map(|operator| operator.id.as_ref()) {
        if !taken.insert(id.clone()) {
            report.error(at, format!("the id {} is used by two operators", at.quote(id)), None);
        }
    }
    let mut numbers: HashMap<&str, usize> = HashMap::new();
    let mut ids = Vec::with_capacity(decoded.len());
    for operator in decoded {
        if let Some((id, _)) = &operator.id {
            ids.push(id.clone());
            continue;
        }
        let number = numbers.entry(operator.type_name).or_default();
        let id = loop {
            let id = match *number {
                0 => operator.type_name.to_owned(),
                number => format!("{}{number}", operator.type_name),
            };
            *number += 1;
            if taken.insert(id.clone()) {
                break id;
            }
        };
        ids.push(id);
    }
    ids
}

/// The operators with places instead of ids; `None` if one of them could not be read.
fn connected(decoded: Vec<DecodedOperator<'_>>, ids: &[String], report: &DecodeReport) -> Option<Vec<OperatorConfig>> {
    let places: HashMap<&str, usize> = ids.iter().enumerate().map(|(place, id)| (id.as_str(), place)).collect();
    let resolve = |outputs: &[OutputReference<'_>]| -> Vec<usize> {
        let mut found = Vec::new();
        for output in outputs {
            match places.get(output.id.as_str()) {
                Some(place) if found.contains(place) => {}
                Some(place) => found.push(*place),
                None => report_missing(output, ids, report),
            }
        }
        found
    };
    let last = decoded.len().saturating_sub(1);
    let mut operators = Vec::with_capacity(decoded.len());
    for (place, operator) in decoded.into_iter().enumerate() {
        let outputs = match &operator.output {
            Some(output) => resolve(output),
            None if place == last || operator.type_name == "router" => Vec::new(),
            None => vec![place + 1],
        };
        let route_outputs: Vec<Vec<usize>> = operator.routes.iter().map(|output| resolve(output)).collect();
        let mut kind = operator.kind;
        if let Some(OperatorKind::Router { routes }) = &mut kind {
            for (route, outputs) in routes.iter_mut().zip(route_outputs) {
                route.outputs = outputs;
            }
        }
        operators.push(kind.map(|kind| OperatorConfig {
            id: ids.get(place).cloned().unwrap_or_default(),
            kind,
            condition: operator.condition,
            on_error: operator.on_error,
            outputs,
        }));
    }
    operators.into_iter().collect()
}

fn report_missing(output: &OutputReference<'_>, ids: &[String], report: &DecodeReport) {
    let known: Vec<&str> = ids.iter().map(String::as_str).collect();
    let word = if output.at.node.origin.is_none() { output.id.as_str() } else { "" };
    let help = report.suggest(word, &known, "operators of this list");
    report.error(&output.at, format!("the operator {} does not exist", output.at.quote(&output.id)), help);
}

/// Refuses circles, and graphs in which one record becomes very many.
fn check_paths(at: &Cursor<'_>, graph: &OperatorGraph, report: &DecodeReport) {
    let mut paths: Vec<PathCount> = vec![PathCount::Unknown; graph.operators.len()];
    for start in 0..graph.operators.len() {
        if let Err(circle) = count_paths(graph, start, &mut paths) {
            let id = graph.operators.get(circle).map(|operator| operator.id.as_str()).unwrap_or_default();
            let message = format!("the operators form a circle: records would pass `{id}` again and again");
            let help = "let `output` name an operator that comes later";
            return report.error(at, message, Some(help.into()));
        }
    }
    if let Some(PathCount::Known(count)) = paths.first()
        && *count > MAX_PATHS
    {
        report.error(at, format!("a record may have at most {MAX_PATHS} ways through the operators"), None);
    }
}

#[derive(Clone, Copy)]
enum PathCount {
    Unknown,
    /// The operator is being counted, so that meeting it again is a circle.
    Pending,
    Known(usize),
}

/// Counts the ways from an operator to the end of the graph, without recursion; an error is a place in a circle.
fn count_paths(graph: &OperatorGraph, start: usize, paths: &mut [PathCount]) -> Result<(), usize> {
    let mut stack = vec![start];
    while let Some(place) = stack.last().copied() {
        let Some(operator) = graph.operators.get(place) else { return Ok(()) };
        let branches = branches(operator);
        let mut next = None;
        for output in branches.iter().copied().flatten() {
            match paths.get(*output) {
                Some(PathCount::Unknown) if *output != place => next = Some(*output),
                Some(PathCount::Unknown | PathCount::Pending) => return Err(*output),
                _ => {}
            }
        }
        let known = |output: &usize| match paths.get(*output) {
            Some(PathCount::Known(count)) => *count,
            _ => 1,
        };
        let count = match next {
            Some(_) => PathCount::Pending,
            // Of the routes of a router a record takes one.
            None => {
                let ways = |outputs: &&[usize]| match outputs {
                    [] => 1,
                    outputs => outputs.iter().map(known).fold(0, usize::saturating_add),
                };
                PathCount::Known(branches.iter().map(ways).max().unwrap_or(1))
            }
        };
        if let Some(slot) = paths.get_mut(place) {
            *slot = count;
        }
        match next {
            Some(next) => stack.push(next),
            None => {
                stack.pop();
            }
        }
    }
    Ok(())
}

/// The sets of outputs of which a record takes one.
fn branches(operator: &OperatorConfig) -> Vec<&[usize]> {
    match &operator.kind {
        OperatorKind::Router { routes } => routes.iter().map(|route| route.outputs.as_slice()).collect(),
        _ => vec![operator.outputs.as_slice()],
    }
}
