//! Links the relay as the collector is linked, so that the two differ only in their work.

fn main() -> std::io::Result<()> {
    kubewake_link_order::apply("relay.order")
}
