//! Stands for trail until it is there.
use opentelemetry_sdk::trace::SdkTracer;

/// Traces nothing.
#[derive(Clone, Debug)]
pub struct Trail;
impl Trail {
    /// None.
    pub fn tracer(&self) -> Option<&SdkTracer> {
        None
    }
}
