//! `request_id:` of a virtual server.

use crate::shapes::FieldName;

section! {
    /// An ID that identifies a request for members, clients and logs.
    RequestId at "virtual_servers.NAME.request_id" {
        /// The header with the ID. weir keeps a value from an address in `client_address.trust` if the header occurs once, and its value has at most 128 characters: letters, digits and `- . _ ~ : / + = @`. weir replaces all other values.
        default header: FieldName = FieldName("X-Request-Id".into());
        /// `true`: clients get the ID, in the same header of each response, but not in responses to malformed requests.
        default respond: bool = true;
    }
    later []
}
