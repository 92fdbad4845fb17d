//! The states, conditions and reasons of a status. This list is complete.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Summary of the conditions of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, Serialize, JsonSchema)]
pub enum State {
    /// The object waits for a slot or for its collectors.
    Pending,
    /// The object delivers telemetry, or would if there were any.
    Ready,
    /// The object works in part: a message of its conditions names the problem.
    Degraded,
    /// The object cannot work with its current spec.
    Invalid,
    /// The object is being deleted and carries no telemetry.
    Terminating,
}

/// The conditions of a pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ConditionType {
    /// The spec is valid, and the pipeline has a slot.
    Accepted,
    /// The pipeline is part of the configuration of the collectors.
    Configured,
    /// The collectors of the pipeline are ready.
    CollectorReady,
    /// The telemetry of the pipeline reaches its backend.
    Delivering,
}

macro_rules! texts {
    ($type:ident { $($(#[doc = $doc:literal])+ $name:ident),+ $(,)? }) => {
        /// The reason of a condition.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $type {
            $($(#[doc = $doc])+ $name),+
        }

        impl $type {
            /// All reasons, in the order of their definition.
            pub const ALL: &[Self] = &[$(Self::$name),+];

            /// The name that appears in a status.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($name)),+
                }
            }
        }
    };
}

texts!(ConditionReason {
    // Accepted
    /// The spec is valid.
    Valid,
    /// The object is being deleted, and finalizers delay its removal.
    Terminating,
    /// All slots of the kind are in use: the pipeline waits until another one is deleted.
    Pending,
    /// A field is missing, or fields contradict each other.
    SpecInvalid,
    /// The name is not allowed for a pipeline.
    NameInvalid,
    /// The endpoint is not a valid address or URL.
    EndpointInvalid,
    /// A credential or a header contains characters that cannot be sent.
    AuthenticationInvalid,
    /// A Secret or a ConfigMap, or a key in it, does not exist.
    SecretMissing,
    /// The operator failed to read a Secret or a ConfigMap, or is not allowed to.
    SecretUnreadable,
    /// A value in a Secret or a ConfigMap is empty, not text, or too long.
    SecretInvalid,
    /// A certificate or a key is invalid, or the two do not match.
    TlsInvalid,
    /// A certificate has expired, or is not valid yet.
    CertificateExpired,
    /// A certificate expires within two weeks.
    CertificateExpiresSoon,
    /// `spec.sampling` is invalid.
    SamplingInvalid,
    /// `spec.filter` is invalid.
    FilterInvalid,
    /// `spec.input` is invalid.
    InputInvalid,
    /// A duration, a size or a number is invalid or out of range.
    SettingInvalid,
    // Configured
    /// The pipeline is part of the configuration of the collectors.
    Configured,
    /// `spec.paused` is true.
    Paused,
    /// The pipeline is not accepted, and so not part of the configuration.
    NotAccepted,
    /// The configuration was rejected, and the previous one stays active.
    DocumentRefused,
    /// Some collectors have not loaded the configuration yet.
    RolloutInProgress,
    /// The operator failed to write an object.
    ApplyFailed,
    // CollectorReady
    /// The collectors of the pipeline are ready.
    CollectorReady,
    /// Some collectors are not ready.
    CollectorNotReady,
    /// No collectors are needed, and none run.
    CollectorNotNeeded,
    // Delivering
    /// The telemetry of the pipeline reaches its backend.
    Delivering,
    /// The backend refuses requests, for example because of wrong credentials.
    BackendRefuses,
    /// The backend cannot be reached.
    BackendUnreachable,
    /// The backend accepts less telemetry than the collectors receive.
    BackendSlow,
    /// The queue for the backend is growing.
    BufferFilling,
    /// Collectors dropped telemetry of the pipeline.
    DataDropped,
    /// The pipeline received no telemetry lately.
    NoData,
    /// The operator failed to query the collectors.
    Unknown,
});

impl State {
    /// The name that appears in a status.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Ready => "Ready",
            Self::Degraded => "Degraded",
            Self::Invalid => "Invalid",
            Self::Terminating => "Terminating",
        }
    }
}

impl ConditionType {
    /// All condition types, in the order in which one depends on the other.
    pub const ALL: [Self; 4] = [Self::Accepted, Self::Configured, Self::CollectorReady, Self::Delivering];

    /// The name that appears in a status.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Accepted => "Accepted",
            Self::Configured => "Configured",
            Self::CollectorReady => "CollectorReady",
            Self::Delivering => "Delivering",
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for ConditionType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for ConditionReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The health of a pipeline by the counters of its collectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DeliveryOutcome {
    /// The telemetry of the pipeline reaches its backend.
    Delivering,
    /// The backend refuses requests.
    BackendRefuses,
    /// The backend cannot be reached.
    BackendUnreachable,
    /// The backend accepts less telemetry than the collectors receive.
    BackendSlow,
    /// The queue for the backend is growing.
    BufferFilling,
    /// Collectors dropped telemetry of the pipeline.
    DataDropped,
    /// The pipeline received no telemetry lately.
    NoData,
    /// No collector could be queried.
    Unknown,
}

impl DeliveryOutcome {
    /// The reason of the condition `Delivering`.
    pub fn reason(self) -> ConditionReason {
        match self {
            Self::Delivering => ConditionReason::Delivering,
            Self::BackendRefuses => ConditionReason::BackendRefuses,
            Self::BackendUnreachable => ConditionReason::BackendUnreachable,
            Self::BackendSlow => ConditionReason::BackendSlow,
            Self::BufferFilling => ConditionReason::BufferFilling,
            Self::DataDropped => ConditionReason::DataDropped,
            Self::NoData => ConditionReason::NoData,
            Self::Unknown => ConditionReason::Unknown,
        }
    }

    /// Whether no problem is known.
    pub fn is_healthy(self) -> bool {
        matches!(self, Self::Delivering | Self::NoData)
    }
}
