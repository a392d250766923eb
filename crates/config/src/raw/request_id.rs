//! `request_id:` of a virtual server.

use crate::shapes::FieldName;

section! {
    /// An id that identifies a request for members, clients and logs.
    RequestId at "virtual_servers.NAME.request_id" {
        /// The field with the id. A value from an address in `client_address.trust` is kept if the field occurs once and has at most 128 letters, digits and `- . _ ~ : / + = @`. All other values are replaced.
        default header: FieldName = FieldName("X-Request-Id".into());
        /// Whether clients get the id, in the same field of each response.
        default respond: bool = true;
    }
    later []
}
