//! `k8s_attributes`.

use kubewake_otlp::Signal;

use crate::{
    component::{ComponentSettings, ProcessorSettings},
    decode::{Cursor, DecodeReport, kubernetes},
    model::KubernetesAttributesProcessor,
};

impl ComponentSettings for KubernetesAttributesProcessor {
    fn decode(at: &Cursor<'_>, report: &DecodeReport) -> Option<Self> {
        kubernetes::k8s_attributes(at, report)
    }
}

impl ProcessorSettings for KubernetesAttributesProcessor {
    fn signals(&self) -> &'static [Signal] {
        &Signal::ALL
    }
}
