//! The relay is linked as the collector is, so that the two differ only in what they do.

fn main() -> std::io::Result<()> {
    kubewake_link_order::apply("relay.order")
}
