//! Why a run of the layer failed, by the step that failed.

use crate::{
    model::names,
    objects::apply::ObjectApplyError,
    pipeline::slot_lock::SlotLockError,
    runtime::{
        error_message::{ErrorDisclosure, api_error_message},
        failure_cause::FailureCause,
    },
};

#[derive(Debug, thiserror::Error)]
pub enum LayerError {
    /// A lock cannot be read.
    #[error(transparent)]
    Lock(#[from] SlotLockError),
    /// A document or the anchor cannot be read.
    #[error("failed to read the collectors' configuration")]
    Read(#[source] Box<kube::Error>),
    /// The API server does not list the pipelines.
    #[error("failed to list the pipelines")]
    List(#[source] Box<kube::Error>),
    #[error(transparent)]
    Apply(#[from] ObjectApplyError),
    /// The anchor, which owns all other objects, was deleted in between.
    #[error("ConfigMap {name} was deleted while the operator reconciled", name = names::LAYER_CONFIG_MAP)]
    AnchorLost,
    /// The objects of a namespace have not been listed.
    #[error("failed to list the objects of the namespace {0}")]
    Unwatched(String),
    /// The collector's rules refuse the document, and no pipeline is at fault.
    #[error("the collectors would reject the configuration: {0}")]
    Refused(String),
}

impl LayerError {
    /// Whether a retry may succeed in a moment.
    pub(super) fn is_transient(&self) -> bool {
        match self {
            Self::Apply(error) => error.is_transient(),
            Self::AnchorLost => true,
            Self::Lock(_) | Self::Read(_) | Self::List(_) | Self::Refused(_) | Self::Unwatched(_) => false,
        }
    }

    /// The message for a status or a log.
    pub(super) fn message(&self) -> String {
        let source = match self {
            Self::Apply(error) => return error.message(),
            Self::Read(error) | Self::List(error) => error,
            Self::Lock(SlotLockError::Api { source, .. }) => source,
            Self::Lock(SlotLockError::Contended(_)) | Self::Refused(_) | Self::AnchorLost | Self::Unwatched(_) => {
                return self.to_string();
            }
        };
        format!("{self}: {}", api_error_message(source, ErrorDisclosure::Full))
    }
}

impl From<&LayerError> for FailureCause {
    fn from(error: &LayerError) -> Self {
        match error {
            LayerError::Lock(error) => error.into(),
            LayerError::Read(source) | LayerError::List(source) => Self::from(&**source),
            LayerError::Apply(error) => error.into(),
            LayerError::AnchorLost | LayerError::Unwatched(_) => Self::NotFound,
            LayerError::Refused(_) => Self::DocumentRefused,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failure_has_the_cause_of_its_step() {
        assert_eq!(FailureCause::from(&SlotLockError::Contended("lock".into())), FailureCause::Conflict);
        assert_eq!(FailureCause::from(&LayerError::Refused("it".into())), FailureCause::DocumentRefused);
    }
}
