//! Renders documents that the collector accepts. Pure.
//!
//! What is rendered is asked of the collector's own rules, with the values that it will find. If they refuse a section, its pipeline is left out and the
//! rest is rendered again; that should never happen, and costs nobody else anything when it does.

use std::{collections::BTreeMap, sync::Arc};

use kubewake_api::{Document, Layer, Settings, Valid};
use kubewake_config::{Errors, load};

use super::Error;
use crate::desk::Id;

#[cfg(test)]
mod tests;

/// What was rendered, and of what.
pub(super) struct Rendered {
    asked: BTreeMap<Id, Arc<Valid>>,
    settings: Settings,
    /// The documents; none, if there is nothing to render.
    pub(super) layer: Layer,
    /// The pipelines that are in them.
    pub(super) valid: BTreeMap<Id, Arc<Valid>>,
    /// Those that are not there as they ask for, and why.
    pub(super) refused: BTreeMap<Id, String>,
}

impl Rendered {
    /// Renders these pipelines. A pipeline that is refused goes on as it was before, if it was.
    pub(super) fn new(
        asked: BTreeMap<Id, Arc<Valid>>,
        settings: Settings,
        before: Option<&Self>,
    ) -> Result<Self, Error> {
        Self::judged_by(accepted, asked, settings, before)
    }

    fn judged_by(
        accepted: impl Fn(&Layer) -> Result<(), Errors>,
        asked: BTreeMap<Id, Arc<Valid>>,
        settings: Settings,
        before: Option<&Self>,
    ) -> Result<Self, Error> {
        let (mut valid, mut refused) = (asked.clone(), BTreeMap::new());
        loop {
            let pipelines: Vec<Valid> = valid.values().map(|valid| (**valid).clone()).collect();
            let layer = kubewake_api::render(&pipelines, &settings);
            let Err(errors) = accepted(&layer) else { return Ok(Self { asked, settings, layer, valid, refused }) };
            let guilty: Vec<(Id, String)> =
                valid.iter().filter_map(|(id, valid)| Some((id.clone(), blame(valid, &errors)?))).collect();
            if guilty.is_empty() {
                return Err(Error::Refused(first(&errors)));
            }
            for (id, why) in guilty {
                tracing::error!(pipeline = %id, why, "the collector would refuse this pipeline as it is");
                let is_same = |last: &&Arc<Valid>| asked.get(&id).is_some_and(|now| now.uid() == last.uid());
                // Twice refused is left out, and what another one was that had its name is not what it was.
                let last = before.and_then(|before| before.valid.get(&id)).filter(is_same);
                match last.filter(|_| !refused.contains_key(&id)) {
                    Some(last) => _ = valid.insert(id.clone(), Arc::clone(last)),
                    None => _ = valid.remove(&id),
                }
                refused.insert(id, why);
            }
        }
    }

    /// Whether this is what would be rendered of these.
    pub(super) fn is_of(&self, asked: &BTreeMap<Id, Arc<Valid>>, settings: &Settings) -> bool {
        self.settings == *settings && self.asked == *asked
    }
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
