/** The version of the package, as clients and brokers say it of themselves. */
export const VERSION = '0.1.0'
