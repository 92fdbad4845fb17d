//! `otlp`.

use std::path::PathBuf;

use kubewake_otlp::Signal;

use crate::{
    ComponentId,
    component::{ComponentSettings, ReceiverSettings, ServerContext},
    decode::{Cursor, DecodeReport, receiver},
    model::{OtlpReceiver, ServerTls},
};

impl ComponentSettings for OtlpReceiver {
    fn decode(at: &Cursor<'_>, report: &DecodeReport) -> Option<Self> {
        receiver::otlp(at, report)
    }

    fn public_fields() -> &'static [&'static str] {
        &["protocols", "grpc", "http"]
    }

    fn files(&self) -> Vec<PathBuf> {
        let grpc = self.grpc.as_ref().and_then(|server| server.tls.as_ref());
        let http = self.http.as_ref().and_then(|server| server.tls.as_ref());
        grpc.into_iter().chain(http).flat_map(ServerTls::files).collect()
    }

    fn auth_extension_ids(&self) -> Vec<&ComponentId> {
        let grpc = self.grpc.as_ref().and_then(|server| server.auth.as_ref());
        let http = self.http.as_ref().and_then(|server| server.auth.as_ref());
        grpc.into_iter().chain(http).collect()
    }
}

impl ReceiverSettings for OtlpReceiver {
    fn signals(&self) -> &'static [Signal] {
        &Signal::ALL
    }

    fn servers(&self) -> Vec<ServerContext> {
        let http = self.http.as_ref();
        let http =
            http.map(|http| ServerContext { sender_identity: http.auth.is_some(), metadata: http.include_metadata });
        self.grpc.as_ref().map(|grpc| grpc.context()).into_iter().chain(http).collect()
    }
}
