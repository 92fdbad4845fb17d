//! `opencensus`.

use std::path::PathBuf;

use kubewake_otlp::Signal;

use crate::{
    ComponentId,
    component::{ComponentSettings, ReceiverSettings, ServerContext},
    decode::{Cursor, DecodeReport, receiver},
    model::{OpenCensusReceiver, ServerTls},
};

impl ComponentSettings for OpenCensusReceiver {
    fn decode(at: &Cursor<'_>, report: &DecodeReport) -> Option<Self> {
        receiver::opencensus(at, report)
    }

    fn files(&self) -> Vec<PathBuf> {
        self.server.tls.as_ref().map(ServerTls::files).unwrap_or_default()
    }

    fn auth_extension_ids(&self) -> Vec<&ComponentId> {
        self.server.auth.iter().collect()
    }
}

impl ReceiverSettings for OpenCensusReceiver {
    fn signals(&self) -> &'static [Signal] {
        &[Signal::Traces]
    }

    fn servers(&self) -> Vec<ServerContext> {
        vec![self.server.context()]
    }
}
