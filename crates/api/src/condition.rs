//! What a status says: states, conditions and reasons. All of them are here, and there are no others.

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
        /// Why a condition is as it is.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $type {
            $($(#[doc = $doc])+ $name),+
        }

        impl $type {
            /// All there are.
            pub const ALL: &[Self] = &[$(Self::$name),+];

            /// As it is written.
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
    /// Everything is right.
    Valid,
    /// It is being deleted, and finalizers hold it.
    Terminating,
    /// All slots of its kind are used up: it waits until a pipeline is deleted.
    Pending,
    /// A value is there twice or not at all, or things do not go together.
    SpecInvalid,
    /// The name cannot be that of a pipeline.
    NameInvalid,
    /// The endpoint is none.
    EndpointInvalid,
    /// A credential or a header cannot be sent.
    AuthenticationInvalid,
    /// A Secret or a ConfigMap, or a key in it, is not there.
    SecretMissing,
    /// A Secret or a ConfigMap must not be read, or cannot be.
    SecretUnreadable,
    /// A value in a Secret or a ConfigMap is empty, no text, or too long.
    SecretInvalid,
    /// A certificate or a key is none, or they do not go together.
    TlsInvalid,
    /// A certificate has expired, or is not valid yet.
    CertificateExpired,
    /// A certificate expires within two weeks.
    CertificateExpiresSoon,
    /// What to sample by makes no sense.
    SamplingInvalid,
    /// What to drop makes no sense.
    FilterInvalid,
    /// What to take makes no sense.
    InputInvalid,
    /// A time, a size or a percentage is none, or out of bounds.
    SettingInvalid,
    // Configured
    /// The pipeline is part of the configuration of the collectors.
    Configured,
    /// Nothing flows because it says so.
    Paused,
    /// It is not accepted, and so not part of the document.
    NotAccepted,
    /// The document was refused, and so its last one goes on.
    DocumentRefused,
    /// The collectors have not read the document yet.
    RolloutInProgress,
    /// Something could not be written.
    ApplyFailed,
    // CollectorReady
    /// The collectors of the pipeline are ready.
    CollectorReady,
    /// Not all collectors run.
    CollectorNotReady,
    /// There are no collectors, and none are needed.
    CollectorNotNeeded,
    // Delivering
    /// The telemetry of the pipeline reaches its backend.
    Delivering,
    /// The backend refuses what is sent, such as for wrong credentials.
    BackendRefuses,
    /// The backend cannot be reached.
    BackendUnreachable,
    /// The backend takes less than comes in.
    BackendSlow,
    /// What is held for the backend grows.
    BufferFilling,
    /// Something was dropped.
    DataDropped,
    /// Nothing came in lately.
    NoData,
    /// The collectors could not be asked.
    Unknown,
});

impl State {
    /// As it is written.
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
    /// All there are, in the order in which one depends on the other.
    pub const ALL: [Self; 4] = [Self::Accepted, Self::Configured, Self::CollectorReady, Self::Delivering];

    /// As it is written.
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

/// What the collectors' own figures say of a pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DeliveryOutcome {
    /// It delivers.
    Delivering,
    /// The backend refuses what is sent.
    BackendRefuses,
    /// The backend cannot be reached.
    BackendUnreachable,
    /// The backend takes less than comes in.
    BackendSlow,
    /// What is held for the backend grows.
    BufferFilling,
    /// Something was dropped.
    DataDropped,
    /// Nothing came in lately.
    NoData,
    /// Nobody could say.
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

    /// Whether everything is as it should be.
    pub fn is_healthy(self) -> bool {
        matches!(self, Self::Delivering | Self::NoData)
    }
}
