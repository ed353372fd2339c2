package op

// GoOnly lists the exported methods of the stores that are no operations, each
// with the reason. A test holds that every method is a row of the table or on
// this list.
func GoOnly() map[string]string {
	return map[string]string{
		"DB.Close":               "ends the handle; a surface closes the store when it stops",
		"DB.Directory":           "known to whoever opened it; the command line shows it in config and doctor",
		"DB.Memories":            "a handle; its methods are the operations",
		"DB.Graph":               "a handle; its methods are the operations",
		"DB.RegisterEventSink":   "takes a callback",
		"DB.UnregisterEventSink": "belongs to the callback",
		"DB.EventSinkRegistered": "belongs to the callback",
	}
}
