//! Renders documents that the collector accepts. Pure.
//!
//! What is rendered is asked of the collector's own rules, with the values that it will find. If they refuse a section, its pipeline is left out and the
//! rest is rendered again; that should never happen, and costs nobody else anything when it does.

use std::{collections::BTreeMap, sync::Arc};

use kubewake_api::{Document, Layer, Settings, Valid};
use kubewake_config::{Errors, load};

use super::Error;
use crate::desk::Id;

/// The documents, and the pipelines that are in them; nothing, if there are none.
pub(super) fn render(
    mut valid: BTreeMap<Id, Arc<Valid>>,
    settings: &Settings,
    refused: &mut BTreeMap<Id, String>,
) -> Result<Option<(Layer, BTreeMap<Id, Arc<Valid>>)>, Error> {
    while !valid.is_empty() {
        let pipelines: Vec<Valid> = valid.values().map(|valid| (**valid).clone()).collect();
        let layer = kubewake_api::render(&pipelines, settings);
        let Err(errors) = accepted(&layer) else { return Ok(Some((layer, valid))) };
        let guilty: Vec<(Id, String)> =
            valid.iter().filter_map(|(id, valid)| Some((id.clone(), blame(valid, &errors)?))).collect();
        if guilty.is_empty() {
            return Err(Error::Refused(first(&errors)));
        }
        for (id, why) in guilty {
            tracing::error!(pipeline = %id, why, "the collector would refuse this pipeline, and it is left out");
            valid.remove(&id);
            refused.insert(id, why);
        }
    }
    Ok(None)
}

fn accepted(layer: &Layer) -> Result<(), Errors> {
    let (sources, documents) = (layer.sources(), [&layer.gateway, &layer.sticky]);
    documents.into_iter().flatten().try_for_each(|Document { yaml, .. }| load(yaml, &sources).map(drop))
}

/// What is said about this pipeline.
fn blame(valid: &Valid, errors: &Errors) -> Option<String> {
    let (id, components) = (valid.pipeline_id(), format!("/{}", valid.component_name()));
    let is_its = |part: &str| part == id || part.ends_with(&components);
    let problem = errors.problems().iter().find(|problem| problem.path.split("::").any(is_its))?;
    Some(format!("{}: {}", problem.path, problem.message))
}

fn first(errors: &Errors) -> String {
    errors.problems().iter().next().map(|problem| format!("{}: {}", problem.path, problem.message)).unwrap_or_default()
}
