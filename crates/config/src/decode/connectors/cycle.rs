//! Finds a cycle of pipelines and connectors.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use kubewake_otlp::Signal;

use super::{DecodeReport, DocumentSections, new_finding};
use crate::{ComponentId, PipelineId, problem::crop};

/// The number of nodes of a cycle that a message names.
const MAX_NAMED_NODES: usize = 16;

/// A node of the graph. A connector is one node per signal that it takes in, so that the graph is no larger than the
/// lists of the pipelines.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum FlowNode<'a> {
    Pipeline(&'a PipelineId),
    Connector(&'a ComponentId, Signal),
}

impl fmt::Display for FlowNode<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pipeline(id) => write!(f, "{}", crop(&id.to_string())),
            Self::Connector(id, _) => write!(f, "`{}`", crop(id.as_str())),
        }
    }
}

/// Reports the first cycle, if there is one, at the connector that closes it.
pub(super) fn check(parts: &DocumentSections<'_>, report: &DecodeReport) {
    let graph = FlowGraph::from_sections(parts);
    let Some(cycle) = graph.find_cycle() else { return };
    let closing = cycle.iter().find_map(|node| match node {
        FlowNode::Pipeline(pipeline) => parts.pipelines.get(*pipeline),
        FlowNode::Connector(..) => None,
    });
    let in_cycle = |id: &ComponentId| {
        cycle.iter().any(|node| matches!(node, FlowNode::Connector(connector, _) if *connector == id))
    };
    let Some(reference) = closing.and_then(|wiring| wiring.exporters.iter().find(|reference| in_cycle(&reference.id)))
    else {
        return;
    };
    let mut names: Vec<String> = cycle.iter().take(MAX_NAMED_NODES).map(ToString::to_string).collect();
    if cycle.len() > MAX_NAMED_NODES {
        names.push("…".to_owned());
    }
    names.extend(cycle.first().map(ToString::to_string));
    let message = format!("connectors and pipelines form a cycle: {}", names.join(" → "));
    let help = "remove one of the connectors: data would never leave the collector".to_owned();
    report.add_error(new_finding(reference.path.clone(), reference.span, message, help));
}

/// The nodes that data goes to next, by node.
struct FlowGraph<'a> {
    next: BTreeMap<FlowNode<'a>, Vec<FlowNode<'a>>>,
}

impl<'a> FlowGraph<'a> {
    fn from_sections(parts: &DocumentSections<'a>) -> Self {
        let mut next: BTreeMap<FlowNode<'a>, Vec<FlowNode<'a>>> = BTreeMap::new();
        for (pipeline, wiring) in parts.pipelines {
            let connectors = |id: &ComponentId| parts.connectors.components.get_key_value(id);
            for (id, _) in wiring.exporters.iter().filter_map(|reference| connectors(&reference.id)) {
                let node = FlowNode::Connector(id, pipeline.signal);
                next.entry(FlowNode::Pipeline(pipeline)).or_default().push(node);
            }
            for (id, connector) in wiring.receivers.iter().filter_map(|reference| connectors(&reference.id)) {
                let feeds = |input: &Signal| connector.outputs(*input).contains(&pipeline.signal);
                for input in Signal::ALL.into_iter().filter(feeds) {
                    next.entry(FlowNode::Connector(id, input)).or_default().push(FlowNode::Pipeline(pipeline));
                }
            }
        }
        Self { next }
    }

    /// The nodes of a cycle, beginning with a pipeline. Searches depth first, without recursion, since a document may
    /// have more pipelines than the stack has frames.
    fn find_cycle(&self) -> Option<Vec<FlowNode<'a>>> {
        let mut finished = BTreeSet::new();
        for start in self.next.keys() {
            let mut path: Vec<(FlowNode<'a>, usize)> = Vec::new();
            let mut on_path = BTreeSet::new();
            if finished.contains(start) {
                continue;
            }
            path.push((*start, 0));
            on_path.insert(*start);
            while let Some((node, position)) = path.last_mut() {
                let next = self.next.get(node).and_then(|next| next.get(*position)).copied();
                *position += 1;
                match next {
                    None => {
                        finished.insert(*node);
                        on_path.remove(node);
                        path.pop();
                    }
                    Some(next) if on_path.contains(&next) => return Some(cycle_from(&path, next)),
                    Some(next) if finished.contains(&next) => {}
                    Some(next) => {
                        path.push((next, 0));
                        on_path.insert(next);
                    }
                }
            }
        }
        None
    }
}

/// The part of the path from a node on, rotated so that a pipeline is first.
fn cycle_from<'a>(path: &[(FlowNode<'a>, usize)], from: FlowNode<'a>) -> Vec<FlowNode<'a>> {
    let nodes = path.iter().map(|(node, _)| *node).skip_while(|node| *node != from);
    let mut cycle: Vec<FlowNode<'a>> = nodes.collect();
    // Pipelines and connectors alternate.
    if matches!(cycle.first(), Some(FlowNode::Connector(..))) {
        cycle.rotate_left(1);
    }
    cycle
}
