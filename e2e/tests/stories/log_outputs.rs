//! Logs go to backends that are not OTLP's.

mod loki;
