package import StratusContainers

extension RecordForm {
    /// The form of CloudKit Web Services.
    package static var webServices: RecordForm {
        RecordForm(
            record: { $2.writeRecord($0, AnswerShape(), nil, $1) }, zone: { $1.writeZoneID($0) },
            subscription: { $1.writeSubscription($0) })
    }
}
