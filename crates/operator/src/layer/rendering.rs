//! Renders documents that the collector accepts. Pure.
//!
//! The collector's own rules check what is rendered, together with the values that it refers to. If they refuse
//! the section of a pipeline, it falls back to the spec that was rendered before, or is left out, and the rest
//! is rendered again. That should never happen, and does not affect other pipelines when it does.

use std::{collections::BTreeMap, fmt, sync::Arc};

use kubewake_api::{CollectorConfigs, CollectorSettings, RenderedDocument, ValidPipeline};
use kubewake_config::{DocumentErrors, DocumentProblem, EncodeError, load};

use super::error::LayerError;
use crate::model::pipeline_key::PipelineKey;

#[cfg(test)]
mod tests;

/// Rendered documents and their input.
pub(super) struct RenderedLayer {
    asked: BTreeMap<PipelineKey, Arc<ValidPipeline>>,
    settings: CollectorSettings,
    /// The documents; none if there is nothing to render.
    pub(super) layer: CollectorConfigs,
    /// The pipelines that are in the documents.
    pub(super) valid: BTreeMap<PipelineKey, Arc<ValidPipeline>>,
    /// The pipelines whose current spec was refused, and why.
    pub(super) refused: BTreeMap<PipelineKey, String>,
}

impl RenderedLayer {
    /// Renders these pipelines. A pipeline that is refused keeps the spec of `before`, if it has one.
    pub(super) fn new(
        asked: BTreeMap<PipelineKey, Arc<ValidPipeline>>,
        settings: CollectorSettings,
        before: Option<&Self>,
    ) -> Result<Self, LayerError> {
        Self::render_accepted_by(check_with_collector, asked, settings, before)
    }

    fn render_accepted_by(
        accepted: impl Fn(&CollectorConfigs) -> Result<(), DocumentErrors>,
        asked: BTreeMap<PipelineKey, Arc<ValidPipeline>>,
        settings: CollectorSettings,
        before: Option<&Self>,
    ) -> Result<Self, LayerError> {
        let mut valid = asked.clone();
        let mut refused = BTreeMap::new();
        loop {
            let pipelines: Vec<ValidPipeline> = valid.values().map(|valid| (**valid).clone()).collect();
            let rejections = match kubewake_api::render(&pipelines, &settings) {
                Ok(layer) => match accepted(&layer) {
                    Ok(()) => return Ok(Self { asked, settings, layer, valid, refused }),
                    Err(errors) => errors.problems().iter().map(RejectedSetting::from).collect(),
                },
                Err(error) => vec![RejectedSetting::from(&error)],
            };
            let about = |valid: &ValidPipeline| rejections.iter().find(|rejected| rejected.belongs_to(valid));
            let guilty: Vec<(PipelineKey, String)> =
                valid.iter().filter_map(|(id, valid)| Some((id.clone(), about(valid)?.to_string()))).collect();
            if guilty.is_empty() {
                let first = rejections.first().map(RejectedSetting::to_string);
                return Err(LayerError::Refused(first.unwrap_or_default()));
            }
            for (id, why) in guilty {
                tracing::error!(pipeline = %id, why, "the collectors would reject the configuration of a pipeline");
                let is_same = |last: &&Arc<ValidPipeline>| asked.get(&id).is_some_and(|now| now.uid() == last.uid());
                // A pipeline is left out at its second refusal. A pipeline of another uid is no earlier version
                // of this one.
                let last = before.and_then(|before| before.valid.get(&id)).filter(is_same);
                match last.filter(|_| !refused.contains_key(&id)) {
                    Some(last) => _ = valid.insert(id.clone(), Arc::clone(last)),
                    None => _ = valid.remove(&id),
                }
                refused.insert(id, why);
            }
        }
    }

    /// Whether the input is unchanged.
    pub(super) fn is_current_for(
        &self,
        asked: &BTreeMap<PipelineKey, Arc<ValidPipeline>>,
        settings: &CollectorSettings,
    ) -> bool {
        self.settings == *settings && self.asked == *asked
    }
}

fn check_with_collector(layer: &CollectorConfigs) -> Result<(), DocumentErrors> {
    let sources = layer.sources();
    layer.documents().try_for_each(|RenderedDocument { yaml, .. }| load(yaml, &sources).map(drop))
}

/// A setting that the collectors would reject, or that no document can contain, and why.
#[derive(Debug)]
struct RejectedSetting {
    path: String,
    message: String,
}

impl RejectedSetting {
    fn belongs_to(&self, valid: &ValidPipeline) -> bool {
        let id = valid.pipeline_id().to_string();
        let components = format!("/{}", valid.component_name());
        self.path.split("::").any(|part| part == id || part.ends_with(&components))
    }
}

impl fmt::Display for RejectedSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.message)
    }
}

impl From<&DocumentProblem> for RejectedSetting {
    fn from(problem: &DocumentProblem) -> Self {
        Self { path: problem.path.clone(), message: problem.message.clone() }
    }
}

impl From<&EncodeError> for RejectedSetting {
    fn from(error: &EncodeError) -> Self {
        Self { path: error.path().to_owned(), message: error.reason().to_owned() }
    }
}
